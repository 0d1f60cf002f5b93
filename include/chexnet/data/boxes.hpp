// Boxes that somebody drew around findings, in the layout of ChestX-ray14's
// BBox_List_2017.csv (Wang et al., CVPR 2017).
#pragma once

#include <string>
#include <vector>

#include "chexnet/config/config.hpp"

namespace chexnet {

// Pixels of the picture that it was drawn on: of NIH's list 1024 x 1024.
struct FindingBox {
  std::string image, finding;  // as in the list
  double x = 0, y = 0, width = 0, height = 0;
  int line = 0;  // of the list
};

// Any number of boxes an image and finding. DataError naming file and line: no
// header of such a list, a field missing, no number, no area.
std::vector<FindingBox> read_boxes(const std::string& path,
                                   const S3Config& s3 = {});

}  // namespace chexnet
