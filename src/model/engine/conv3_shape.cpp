#include "conv3_shape.hpp"

#include <cassert>

// A padded image in a panel, here 4 x 3 pixels; each cell is a block of 16
// units (16 channels, or 32 in bf16 pairs). The panel repeats this for every
// image of the group, then for every block of channels.
//
//        0 0 0 0 0    one row of zeros above
//        0 a b c 0    a zero on either side, so a 3x3 window never needs a test
//        0 d e f 0
//        0 g h i 0
//        0 j k l 0
//        0 0 0 0 0    two rows of zeros below: two rows of fewer than 7
//        0 0 0 0 0    pixels, multiplied together, read past the last one
//
// Invariant: zeros are set once per task (clear_border) and never again; the
// next image at the same position in a group overwrites the rows of pixels.
namespace chexnet {
namespace {

// With more channels the weight matrices of Winograd no longer stay in the
// caches. Direct convolutions that multiply pairs are twice as fast.
int most_winograd_channels(int pair) { return pair == 1 ? 256 : 128; }
// Outputs for which a direct convolution reads its weights once: so many that
// weights from beyond L2 keep up with the multiplications.
constexpr int kBandPixels = 224;

}  // namespace

template <class S>
Conv3Shape<S>::Conv3Shape(const Build<S>& build, const std::string& name,
                          int in_, int out_, MapShape shape, int stride_)
    : in(in_),
      out(out_),
      stride(stride_),
      winograd(build.winograd && stride_ == 1 &&
               in_ <= most_winograd_channels(build.kernels.pair)),
      pair(winograd ? 1 : build.kernels.pair),
      input(shape),
      output(stride_ == 1 ? shape : shape.halved()),
      padded{{shape.height, shape.width}},
      padded_output{{output.height, output.width}} {
  assert(in % kOutputs == 0 && out % kOutputs == 0);
  assert(stride == 1 || stride == 2);
  // Small maps go several to a panel, so that a band is full. Only training
  // does that.
  const int together = kBandPixels / (output.height * output.width);
  group = build.training
              ? std::clamp(together, 1, std::max(1, shape.images / 8))
              : 1;
  groups = (shape.images + group - 1) / group;
  const int64_t at = build.parameters.parameter(name + ".weight");
  weight = static_cast<const A*>(build.parameters.values) + at;
  gradient = static_cast<A*>(build.parameters.gradients) + at;
  end = at + int64_t{9} * in * out;
}

template <class S>
int Conv3Shape<S>::band_rows() const {
  return std::clamp(kBandPixels / (output.width * group), 1, output.height);
}

template <class S>
void Conv3Shape<S>::clear_border(Panel<A> panel, const PaddedImage& shape,
                                 int blocks) const {
  const auto clear = [](A* from, int64_t rows) {
    std::fill_n(from, rows * kBlock, A(0));
  };
  const int64_t pitch = shape.pitch();
  for (int block = 0; block < blocks; ++block)
    for (int image = 0; image < group; ++image) {
      A* at =
          panel.units + (block * panel.rows + image * shape.rows()) * kBlock;
      clear(at, pitch);
      for (int y = 0; y < shape.height; ++y) {
        clear(at + (y + 1) * pitch * kBlock, 1);
        clear(at + ((y + 2) * pitch - 1) * kBlock, 1);
      }
      clear(at + (shape.height + 1) * pitch * kBlock, 3 * pitch);
    }
}

// Backward makes two products of each, and reads and writes twice as much.
template <class S>
PassTimer Conv3Shape<S>::timer(const Pass<S>& run, PassKind kind,
                               int images) const {
  const auto values = [&](const MapShape& map, int channels) {
    return static_cast<double>(map.height) * map.width * images * channels;
  };
  const double inputs = values(input, in), outputs = values(output, out),
               passes = kind == PassKind::kConv3Backward ? 2 : 1;
  return {run.layer_times, kind, passes * 18.0 * outputs * in,
          passes * (inputs + outputs) * sizeof(S)};
}

void add_block_offsets(std::vector<int64_t>& offsets, int blocks,
                       int64_t panel_rows, const PaddedImage& shape, int y,
                       int x) {
  for (int block = 0; block < blocks; ++block)
    offsets.push_back((block * panel_rows + int64_t{y} * shape.pitch() + x) *
                      kBlock);
}

template struct Conv3Shape<float>;
template struct Conv3Shape<Bf16>;
template struct Conv3Shape<double>;

}  // namespace chexnet
