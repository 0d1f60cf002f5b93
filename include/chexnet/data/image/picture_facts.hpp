// What a picture's file tells besides its gray values.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace chexnet {

struct PictureFacts {
  int width = 0, height = 0;  // as stored, whichever way up
  bool in_color = false;      // to be seen: gray stored as RGB is gray
};
// Of a PNG or JPEG that decode_image() takes, whose errors it throws. One that
// is stored with colors is decoded for it, a JPEG at an eighth of its size.
PictureFacts picture_facts(std::span<const std::byte> bytes,
                           const std::string& origin);

}  // namespace chexnet
