// Removes names from texts before they are passed on: of patients, images,
// users, hosts, folders.
//
// Names that it was given are replaced wherever they are whole words. These are
// replaced without being given: URLs, absolute paths outside of the system's
// folders, files of images and tables, network addresses, DICOM's UIDs and
// NIH's numbers of patients.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chexnet/core/json.hpp"

namespace chexnet {

class Redaction {
 public:
  // A word may hold any bytes ("MRN-770000", "node17.site.example"); it is
  // found where no letter, digit or '_' touches it. A number of fewer than 6
  // digits cannot be told from a count: it is replaced only after "patient" or
  // "MRN". Words of one letter are skipped.
  void hide(std::string_view word, const std::string& by);
  // A name ("Doe, Jane 3") as a whole, and each word of it that is not one of
  // the program's own.
  void hide_name(std::string_view name, const std::string& by);
  // A path, with or without blanks, and what is below it: up to the end of a
  // hidden word or of an image's name, whatever blanks and quotes these hold. A
  // folder in it whose name holds some also goes as a name: a shell's quotes
  // may cut the path in two.
  void hide_path(std::string_view path, const std::string& by);

  std::string of_text(std::string_view text) const;
  // JSON, one value per line or one value in all. Keys of the program, numbers
  // that are no names and what `event` says stay; so it is JSON afterwards.
  // Lines that are no JSON are text.
  std::string of_json(std::string_view text) const;

 private:
  struct Path {
    std::string text, by;
  };
  struct Found {
    size_t end;
    const std::string* by;  // null when no hidden word begins there
  };
  Found longest_word(std::string_view text, size_t at,
                     std::string_view before) const;
  Json of_value(const Json& value, std::string_view key) const;
  Json of_object(const Json& object) const;
  Json of_number(const Json& number, std::string_view before) const;
  size_t end_below(std::string_view text, size_t end) const;
  std::string without_paths(std::string_view text) const;
  std::string without_words(std::string_view text) const;

  // What replaces them.
  std::unordered_map<std::string, std::string> words_;
  size_t longest_word_ = 0;
  // By length, longest first.
  std::map<size_t, std::vector<Path>, std::greater<>> paths_;
};

// Words of the program's texts: a folder "train" or a column "image" names
// nobody.
bool word_of_program(std::string_view word);

}  // namespace chexnet
