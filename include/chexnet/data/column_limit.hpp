// How wide a table may be.
#pragma once

#include <cstddef>

namespace chexnet {

// More columns than any table of images and findings has; work for each pair of
// columns still takes little time.
constexpr size_t kMostColumns = 10'000;

}  // namespace chexnet
