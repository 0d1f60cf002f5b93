#include "chexnet/data/image/crop.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("the center crop begins where torchvision's does, for every size") {
  for (int size = 8; size <= 512; ++size) {
    for (int crop = 8; crop <= size; ++crop) {
      // torchvision: int(round((h - crop) / 2.0)); Python rounds a half to the
      // even number, as nearbyint does in the mode that a program starts in.
      const auto wanted = static_cast<int>(std::nearbyint((size - crop) / 2.0));
      if (center_crop_begin(size, crop) == wanted) continue;
      FAIL("size " << size << ", crop " << crop << ": begins at "
                   << center_crop_begin(size, crop) << ", torchvision's at "
                   << wanted);
    }
  }
  CHECK(center_crop_begin(227, 224) == 2);
  CHECK(center_crop_begin(225, 224) == 0);
}
