// One heat map and its area in the picture that it explains.
#pragma once

#include <vector>

namespace chexnet {

// A rectangle in fractions of a picture's width and height, so that it is the
// same on a picture of another size: 0 is its left or top edge, 1 its right or
// bottom one.
struct Box {
  double left = 0, top = 0, right = 1, bottom = 1;
  double area() const;  // 0 where it is empty
  bool holds(double x, double y) const;
  bool operator==(const Box&) const = default;
};
Box intersection(const Box& a, const Box& b);
// Of the areas of intersection and union; 0 where both are empty.
double intersection_over_union(const Box& a, const Box& b);

// The area that a network saw of a picture that was resized to [size, size] and
// center-cropped to [crop, crop].
Box center_crop_place(int size, int crop);

// Fractions of the picture throughout.
struct HeatMap {
  int width = 0, height = 0;
  std::vector<float> values;  // [height, width]
  Box place;                  // what the network saw
  // The map's pixels, side by side; need not be the same, as a pixel of a
  // network's last map is centered where its windows are.
  Box pixels;
};

// The map over its area, [height, width]: bilinear between the centers of its
// pixels, beyond them as the nearest one (where pixels fill the area, PyTorch's
// interpolate with align_corners=False).
std::vector<float> resized(const HeatMap& map, int width, int height);

// Where the map is highest: the center of its highest pixel, of several the
// first, within its area. Bilinear resizing has its maximum there.
struct Peak {
  double x = 0, y = 0;
};
Peak peak_of(const HeatMap& map);

}  // namespace chexnet
