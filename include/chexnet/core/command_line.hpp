// What both programs' command lines share beyond their parser.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace chexnet {

// CLI::ValidationError for the first word that is empty, or is `--option=` of
// the command that is called, as "$SITE" of a shell that has no SITE gives it:
// such a value would count as none, and the parser takes the next word for the
// value of the second.
void refuse_empty_values(const CLI::App& app,
                         const std::vector<std::string>& words);

// Prints the parser's message: help on stdout, or an error on stderr, without
// control characters. Returns the program's exit code.
int say_end_of_parsing(const CLI::App& app, const CLI::ParseError& end);

// CheckpointError where output of std::cout did not reach stdout: its disk is
// full, or it is closed. Call it before a program ends with 0.
void require_stdout();
// `code`, or where that would throw its error's, which is logged.
int code_when_said(int code);

}  // namespace chexnet
