// Names by their looks: a chunk of text that is a path, a file, an address, an
// image or a number of a patient, whoever wrote it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chexnet {

// Letters, digits and '_'. Bytes from 128 on are parts of letters in UTF-8.
bool in_word(char c);
bool is_number(std::string_view text);  // digits only, and one at least
// Between chunks: what cannot be part of a path that is not quoted, a URL, an
// address.
bool separates(char c);
// Where the first image's name ends that the line from `at` on holds before a
// ": "; `at` when there is none. The name may be replaced already.
size_t end_of_image(std::string_view text, size_t at);
// Each chunk that looks like a name, by a word for its kind: PATH, FILE, IMAGE,
// ADDRESS, UID or ID.
std::string without_names(std::string_view text);

}  // namespace chexnet
