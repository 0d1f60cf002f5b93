// A shell script with places to fill in, itself a script that shellcheck reads:
//   @NAME@            inside a line: a text
//   #@NAME@           a whole line: any number of lines, also none
//   #@IF NAME@ ... #@END@   lines that stand only where NAME is among `parts`;
//                           no nesting
#pragma once

#include <map>
#include <set>
#include <string>

namespace chexnet {

// The file in templates/, as it was when the program was built.
extern const char* const kJobScriptTemplate;

struct TemplateValues {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> lines;  // each line with its end
  std::set<std::string> parts;
};

// What is filled in is not looked at again. std::logic_error for a place
// without a value: a fault of the program.
std::string filled(const std::string& script, const TemplateValues& values);

}  // namespace chexnet
