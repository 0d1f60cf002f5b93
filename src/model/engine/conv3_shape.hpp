// Shared by forward and backward of a 3x3 convolution: sizes, and how a batch
// is cut into groups of images that one task pads and works on.
#pragma once

#include <string>
#include <vector>

#include "build.hpp"
#include "parts.hpp"
#include "pass.hpp"

namespace chexnet {

template <class S>
struct Conv3Shape {
  using A = Accumulator<S>;
  // Slack before a panel: stores to a padded image also touch the unit left of
  // the first pixel.
  static constexpr int64_t kSlack = kBlock;

  // stride 1 or 2
  Conv3Shape(const Build<S>& build, const std::string& name, int in, int out,
             MapShape shape, int stride);

  // How a training pass cuts the tiles of the batch into chunks, as many for
  // each of four threads.
  Cut tile_chunks(const WinogradKernels<S>& kernels) const {
    const int64_t tiles =
        int64_t{input.images} * winograd_tiles(padded, kernels.side);
    const int64_t chunks =
        (tiles + kernels.most_tiles - 1) / kernels.most_tiles;
    return {tiles, static_cast<int>(std::min((chunks + 3) / 4 * 4, tiles))};
  }

  int group_images(int group_number) const {
    return std::min(group, input.images - group_number * group);
  }
  // Rows of outputs of each image of a group that direct convolutions compute
  // at a time.
  int band_rows() const;
  // From pixel to pixel of such a band in a panel, or in the map.
  static BandSteps steps(const PaddedImage& shape, int row_step = 1) {
    return {shape.rows(), int64_t{row_step} * shape.pitch()};
  }
  static BandSteps steps(const MapShape& shape, int row_step = 1) {
    return {int64_t{shape.height} * shape.width,
            int64_t{row_step} * shape.width};
  }
  // Zeroes the rows above and below each image of a panel, and the columns at
  // its sides.
  void clear_border(Panel<A> panel, const PaddedImage& shape, int blocks) const;
  // The work of a pass over so many images, as the direct algorithm's.
  PassTimer timer(const Pass<S>& run, PassKind kind, int images) const;

  int in, out, stride;
  bool winograd;  // with products of the accumulator's type
  int pair;       // channels (or pixels) in a unit of direct convolutions
  MapShape input, output;
  PaddedImage padded, padded_output;
  int group, groups;  // images of a group; groups of a batch
  const A* weight;    // [out][in][3][3]
  A* gradient;
  int64_t end;  // of the weight in the flat buffer
};

// Adds the offset of each block of `channels` at (y, x) in a panel of padded
// images.
void add_block_offsets(std::vector<int64_t>& offsets, int blocks,
                       int64_t panel_rows, const PaddedImage& shape, int y,
                       int x);

}  // namespace chexnet
