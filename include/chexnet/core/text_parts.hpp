// Parts of a text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace chexnet {

// The lines of `text`, without their ends. A last one without an end is left
// out.
std::vector<std::string> lines_of(std::string_view text);

// As much of the beginning as `most` bytes hold without cutting a character of
// UTF-8. Nothing where there is no beginning of one.
std::string_view first_bytes(std::string_view text, size_t most);

// Two remarks, either of which may be empty, as one: "a; b".
std::string joined_notes(std::string_view a, std::string_view b);

// Whether a path is one of an object store.
inline bool is_s3(std::string_view path) { return path.starts_with("s3://"); }

}  // namespace chexnet
