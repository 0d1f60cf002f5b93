// Takes names out of texts before they leave the house: of patients, images, users, hosts, folders.
//
// What it is told of is replaced wherever it stands as a whole word; besides, what looks like a
// name goes without being told: URLs, absolute paths outside of the system's folders, files of
// images and tables, network addresses, DICOM's UIDs and NIH's numbers of patients.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace chexnet {

class Redaction {
 public:
  // A word may hold any bytes ("MRN-770000", "node17.site.example"); it is found where no letter,
  // digit or '_' touches it. Numbers below 100,000 and words of one letter say nothing about
  // anybody and are passed over.
  void hide(std::string_view word, const std::string& by);
  // A path, with or without blanks, and what lies below it.
  void hide_path(std::string_view path, const std::string& by);

  std::string of_text(std::string_view text) const;
  // JSON, one value a line or one value in all. Keys, numbers and what `event` says stay; so it is
  // JSON afterwards. Lines that are no JSON are text.
  std::string of_json(std::string_view text) const;
  // A YAML file of this program: keys stay.
  std::string of_yaml(std::string_view text) const;

 private:
  struct Path {
    std::string text, by;
  };
  std::string without_paths(std::string_view text) const;
  std::string without_words(std::string_view text) const;

  std::unordered_map<std::string, std::string> words_;  // what stands in their place
  std::size_t longest_word_ = 0;
  std::map<std::size_t, std::vector<Path>, std::greater<>> paths_;  // by length, longest first
};

}  // namespace chexnet
