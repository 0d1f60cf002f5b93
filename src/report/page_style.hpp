// page.css, as it was when the program was built.
#pragma once

namespace chexnet {

extern const char* const kPageStyle;

}  // namespace chexnet
