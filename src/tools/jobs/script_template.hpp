// A shell script with placeholders, itself a script that shellcheck reads:
//   @NAME@            inside a line: a text
//   #@NAME@           a whole line: any number of lines, also none
#pragma once

#include <map>
#include <string>

namespace chexnet {

// The files in templates/, as they were when the program was built.
extern const char* const kSlurmScript;
extern const char* const kPbsScript;

struct TemplateValues {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> lines;  // each line with its end
};

// Values are not searched for placeholders. std::logic_error for one without a
// value: a fault of the program.
std::string filled(const std::string& script, const TemplateValues& values);

}  // namespace chexnet
