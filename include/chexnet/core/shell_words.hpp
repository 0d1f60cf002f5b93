// A command as a line of text, and back.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// As a shell would take it: words with special characters quoted.
std::string command_text(const std::vector<std::string>& command);
// The words of a #PBS line or an option, which blanks separate. Quotes keep
// blanks together and are left out; ConfigError where one is not closed.
std::vector<std::string> words_of(const std::string& text);

// Whether `words` give the option `name` ("--resume"), with or without its
// value after a '='.
bool has_option(const std::vector<std::string>& words, const std::string& name);

}  // namespace chexnet
