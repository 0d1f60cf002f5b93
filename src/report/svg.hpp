// Shared by pictures of a page that also stand alone.
#pragma once

#include <string>

namespace chexnet {

// Up to the white ground, in the page's font. `label` is read aloud.
std::string svg_begin(double width, double height, const std::string& label);
// `more`: attributes, with a space before them.
std::string svg_text(const std::string& x, double y, const char* anchor,
                     const std::string& what, const std::string& more = "");

}  // namespace chexnet
