// That a check passed before, kept in the user's cache folder, so that it is
// made once for each subject and not at every start.
#pragma once

#include <filesystem>
#include <string>

namespace chexnet {

// Any number of ranks and processes may ask and remember at once; each user has
// a folder. What cannot be read or kept counts as not passed.
class RememberedCheck {
 public:
  // `subject`: all that the result depends on, as lines of text.
  RememberedCheck(const std::string& kind, std::string subject);
  bool passed() const;
  // `result` is for people who look into the file.
  void remember(const std::string& result) const;

 private:
  std::string kind_, subject_;
  std::filesystem::path file_;
};

}  // namespace chexnet
