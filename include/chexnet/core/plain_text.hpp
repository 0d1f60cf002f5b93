// Names that come from archives and file systems hold any bytes. They are made
// harmless in two ways: for people, and for the fields of a text file.
#pragma once

#include <string>
#include <string_view>

namespace chexnet {

// Control characters (of ASCII, and U+0080..9F) as \x1b, marks that change the
// direction of text as \u202e, all else as it is: nothing that a terminal obeys
// is left. `kept`: characters that stay, such as the line ends of a table.
std::string printable(std::string_view text, std::string_view kept = "");

// Of the text of an error; the rest is left out of its middle.
constexpr size_t kLongestError = 16'000;  // bytes

// Its beginning and end where `text` is longer than `most` bytes, and between
// them how many are left out.
std::string shortened(std::string_view text, size_t most);

// Whether it is of ASCII's visible characters alone: no blank, no line end.
bool is_visible(std::string_view text);

// Some editors begin a UTF-8 text with U+FEFF, which is no part of it.
std::string_view without_byte_order_mark(std::string_view text);

// ASCII's capitals as small letters.
std::string lowered(std::string_view text);

// Control characters and backslashes as \xHH, so that tabs and line ends can
// separate fields; and back. unescaped() leaves what is no such sequence as it
// is.
std::string escaped(std::string_view text);
std::string unescaped(std::string_view text);

}  // namespace chexnet
