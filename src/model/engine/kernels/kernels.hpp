// The engine's innermost loops, one table for each instruction set and storage
// type, chosen once at run time. All work on tiles that stay in the L2 cache;
// plans, passes and threads are elsewhere.
//
// Maps are channels-last: pixel p's channel c of a map is at data[p * pitch +
// c]. Channels are multiples of 32.
//
// A panel is a tile of pixels ready for the multiply kernels: [K /
// 16][rows][16] units, a unit being one accumulator-sized word. It holds one
// channel, or, where the instruction set multiplies bf16 pairs, two neighbors
// along the sum: two channels of one pixel in a panel that feeds outputs
// (`channels` pairs), or two pixels of one channel in a panel that feeds a
// weight gradient
// (`pixels` pairs).
//
// Packed weights are [N / 32][K units][32]. Sums of a pass over channels are
// double.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/model/engine/storage.hpp"

namespace chexnet {

inline constexpr int kBlock = 16;  // units of a panel's block
// Output channels the multiply kernel makes at once.
inline constexpr int kOutputs = 32;

// relu(scale * x + shift): the input of a convolution.
template <class S>
struct FeatureMap {
  const S* x = nullptr;
  int64_t pitch = 0;
  int channels = 0;
  const Accumulator<S>*scale = nullptr, *shift = nullptr;  // [channels]
};

// a * d + b * x + c: the gradient of a convolution's output, from that of its
// BatchNorm.
template <class S>
struct GradientMap {
  const S* d = nullptr;
  int64_t d_pitch = 0;
  const S* x = nullptr;
  int64_t x_pitch = 0;
  int channels = 0;
  const Accumulator<S>*a = nullptr, *b = nullptr, *c = nullptr;  // [channels]
};

// A matrix of weights [outputs][inputs] inside a tensor.
template <class A>
struct WeightMatrix {
  const A* values = nullptr;
  int64_t output_step = 0, input_step = 0;
};

// Where a panel is: `rows` between two blocks of 16 units.
template <class A>
struct Panel {
  A* units = nullptr;
  int64_t rows = 0;
};

// Sum and sum of squares of each output channel, added to.
struct Moments {
  double *sum = nullptr, *square = nullptr;  // [N]; null: not wanted
  Moments from(int channel) const {
    return sum == nullptr ? *this : Moments{sum + channel, square + channel};
  }
};

// The epilogue of a convolution's outputs on their way to memory: it takes
// their sums, or, for inference, applies the BatchNorm and ReLU after it.
template <class S>
struct OutputStage {
  Moments moments{};
  const Accumulator<S>*scale = nullptr,
        *shift = nullptr;  // [N]; null: stored as they are
  OutputStage from(int channel) const {
    if (scale == nullptr) return {moments.from(channel)};
    return {moments.from(channel), scale + channel, shift + channel};
  }
};

// How a gradient that leaves a convolution is stored.
enum class AccumulateMode {
  kStore,  // d = ...
  kAdd,    // d += ...
  // The values in d pass through relu as well: dy + d instead of dy.
  kAddBeforeRelu,
};
// The epilogue of a feature map's gradient as it leaves a convolution's
// registers, channels [first, last) of it: d = multiplier * (dy where relu was
// open), and the two sums BatchNorm's backward needs.
template <class S>
struct GradientEpilogue {
  FeatureMap<S> map;
  const Accumulator<S>* mean = nullptr;  // [channels]
  S* d = nullptr;
  int64_t d_pitch = 0;
  const Accumulator<S>* multiplier = nullptr;  // [channels]
  AccumulateMode accumulate = AccumulateMode::kStore;
  double *sum = nullptr,
         *product = nullptr;  // [channels]: of dy, of dy * (x - mean); added to
  int first = 0, last = 0;
};

struct ImageSize {
  int height = 0, width = 0;
};

// Tiles of Winograd, of `side` x `side` outputs, are numbered along the image,
// then to the next image.
inline int winograd_tiles(ImageSize image, int side) {
  return ((image.width + side - 1) / side) * ((image.height + side - 1) / side);
}
// A tile's first output.
struct WinogradTile {
  int y = 0, x = 0;
  int64_t pixel = 0;  // of the batch
};
inline WinogradTile winograd_tile(ImageSize image, int side, int tile) {
  const int in_image = winograd_tiles(image, side),
            across = (image.width + side - 1) / side;
  const int rest = tile % in_image, y = rest / across * side,
            x = rest % across * side;
  return {
      y, x,
      (static_cast<int64_t>(tile / in_image) * image.height + y) * image.width +
          x};
}

// Images inside a panel, each with a border of zeros; at() gives a pixel's
// panel row.
struct PaddedImage : ImageSize {
  int pitch() const { return width + 2; }
  // One row above; three below, because two short rows that are multiplied
  // together read past the last one.
  int64_t rows() const { return static_cast<int64_t>(height + 4) * pitch(); }
  int64_t at(int image, int y, int x) const {
    return image * rows() + static_cast<int64_t>(y + 1) * pitch() + x + 1;
  }
};

// Rows that a direct convolution computes at a time, so that weights that do
// not fit into L2 are read once for all of them: `rows` of each of `images`.
struct Band {
  int images = 1, rows = 1, width = 1;
};
// From image to image and from row to row of a band: in rows of a panel or in
// pixels.
struct BandSteps {
  int64_t image = 0, row = 0;
  int64_t at(int i, int y) const { return i * image + y * row; }
};

// Rows of memory the next tile will read, prefetched while this one is
// multiplied. `rows` = 0: none.
struct NextRows {
  const void* at = nullptr;
  int64_t pitch_bytes = 0, row_bytes = 0;
  int rows = 0;
};

// The tile that comes next, normalized into its own panel while this one is
// multiplied: `rows` pixels of the map, one after the other, from `first`.
// `rows` = 0: none.
template <class S>
struct NextTile {
  FeatureMap<S> map;
  int64_t first = 0;
  int rows = 0;
  Panel<Accumulator<S>> panel;
};

// 3x3 by Winograd, a chunk of at most `most_tiles` tiles (winograd_tile) at a
// time. All forms have (side + 2)^2 frequencies, step() apart, and are of the
// accumulator's type: bf16 is only how maps are stored.
template <class S>
struct WinogradKernels {
  using A = Accumulator<S>;
  int side = 0;  // of a tile of outputs
  int most_tiles = 0;
  int frequencies() const { return (side + 2) * (side + 2); }
  // Elements of V, M or Q a frequency. One block more than the values need,
  // else all frequencies would lie in the same few sets of a cache.
  constexpr int64_t step(int channels) const {
    return int64_t{channels} * most_tiles + kBlock;
  }

  // The form U = G g Gt of the 3x3 kernels of 32 outputs and inputs [first,
  // last): to[f * frequency_step + input * 32 + output]. `from` points to the
  // first of 9 taps; `flipped` turns each kernel by 180 degrees.
  void (*pack)(const WeightMatrix<A>& from, int first_output, int first,
               int last, bool flipped, int64_t frequency_step, A* to) = nullptr;
  // V[frequency][channels / 16][tile][16] of a map; without scale it is read as
  // it is.
  void (*input)(const FeatureMap<S>& map, ImageSize shape, int first_tile,
                int tiles, A* v) = nullptr;
  // M[frequency][outputs / 32][tile][32] = V x U,
  // U[frequency][outputs / 32][channels][32]
  void (*multiply)(const A* v, int tiles, int channels, const A* u, int outputs,
                   A* m) = nullptr;
  void (*output)(const A* m, ImageSize shape, int first_tile, int tiles,
                 int outputs, S* out, int64_t out_pitch,
                 Moments moments) = nullptr;

  // Backward, for a side of 4. V as above and Q, the form of dy that the
  // weights' gradient needs, laid out like V.
  void (*gradient)(const GradientMap<S>& map, ImageSize shape, int first_tile,
                   int tiles, A* v, A* q) = nullptr;
  // The products for the epilogue's channels of `outputs`, into M, and from
  // there through the epilogue.
  void (*multiply_back)(const A* v, ImageSize shape, int first_tile, int tiles,
                        int channels, const A* u, int outputs,
                        const GradientEpilogue<S>& epilogue, A* m) = nullptr;
  // w[frequency][outputs][channels] (+)= Q x V over tiles; `pitch` between two
  // rows of w.
  void (*weight_gradient)(const A* q, int outputs, const A* v, int channels,
                          int tiles, A* w, int64_t pitch, bool add,
                          NextRows next, NextRows also_next) = nullptr;
  // As Kernels::kernel_gradients, of all frequencies.
  void (*kernel_gradients)(const A* sums, const int64_t* offsets,
                           int64_t part_step, int parts, bool add,
                           A* to) = nullptr;
};

// A 7x7 window of the stem is read as 8x8: so many blocks of 16 values.
inline constexpr int kStemBlocks = 4;
// Constants to add to the outputs of a row, by their pixel's position class
// (engine/stem.cpp): values[place[x]][outputs].
template <class A>
struct StemConstants {
  const A* values = nullptr;
  const uint8_t* place = nullptr;
};

template <class S>
struct Kernels {
  using A = Accumulator<S>;

  const char* name = "";
  int pair = 1;  // channels (or pixels) in a unit

  // Multiplies and adds in registers for a while; returns the floating-point
  // operations done.
  double (*fma_loop)(int rounds) = nullptr;

  // --- weights
  // Those of 32 outputs and inputs [first, last), multiples of 16: [input /
  // pair][32] units at `to`, the address of input 0.
  void (*pack)(const WeightMatrix<A>& from, int first_output, int first,
               int last, A* to);
  // to[n] (+)= the sums of all parts, in their order; n is a multiple of 16.
  void (*add_parts)(const A* parts, int64_t part_step, int count, int64_t n,
                    bool add, A* to);
  // to[16][9] (+)= the gradients of the 3x3 kernels of 16 neighboring inputs,
  // all parts together. A part's sums of tap t are the 16 at `sums` +
  // offsets[t]; the memory after them is prefetched, as the next call is likely
  // to read it.
  void (*kernel_gradients)(const A* sums, const int64_t* offsets,
                           int64_t part_step, int parts, bool add, A* to);

  // --- panels. `pixels` [n] are the map's pixels; they become rows `at` .. of
  // the panel.
  void (*normalize)(const FeatureMap<S>& map, const int64_t* pixels, int n,
                    Panel<A> panel, int64_t at);
  // As they are: `n` pixels from `first` of a map that needs neither BatchNorm
  // nor ReLU.
  void (*copy)(const S* map, int64_t pitch, int channels, int64_t first, int n,
               Panel<A> panel, int64_t at);
  // The mean over 2x2 pixels, `pixels` being the upper left ones, `row` pixels
  // a row of the map.
  void (*normalize_pooled)(const FeatureMap<S>& map, const int64_t* pixels,
                           int n, int64_t row, Panel<A> panel, int64_t at);
  // `by_pixels` (if its units are given) gets the form for weight gradients;
  // its rows count pixels.
  void (*gradient)(const GradientMap<S>& map, int64_t first_pixel, int n,
                   Panel<A> by_channels, Panel<A> by_pixels);
  // The same for one row of a padded image; in `by_pixels` row i pairs pixels i
  // and i + 1.
  void (*gradient_row)(const GradientMap<S>& map, int64_t first_pixel, int n,
                       Panel<A> by_channels, Panel<A> by_pixels, int64_t at);

  // --- 1x1
  // out[p][n] = sum over k of panel[p][k] * weights[n][k]. The next tile has no
  // more rows than this one.
  void (*multiply)(Panel<A> panel, int n, int channels, const A* weights,
                   int outputs, S* out, int64_t out_pitch,
                   const OutputStage<S>& stage, const NextTile<S>& next);
  // dy = panel x weights for the epilogue's channels; `y` gets the normalized
  // map by pixels, its channels counted from the epilogue's first.
  void (*multiply_back)(Panel<A> panel, int n, int channels, const A* weights,
                        const GradientEpilogue<S>& epilogue,
                        const int64_t* pixels, Panel<A> y);
  // The epilogue follows a 2x2 mean: each value goes to four pixels, a quarter
  // each.
  void (*multiply_back_pooled)(Panel<A> panel, int n, int channels,
                               const A* weights,
                               const GradientEpilogue<S>& epilogue,
                               const int64_t* pixels, int64_t row, Panel<A> y);
  // w[o][c] (+)= sum over n pixels of dy[p][o] * y[p][c]; `pitch` between two
  // rows of w.
  void (*weight_gradient)(Panel<A> dy, int outputs, Panel<A> y, int channels,
                          int n, A* w, int64_t pitch, bool add, NextRows next,
                          NextRows also_next);

  // --- 3x3, padding 1, direct. `offsets` [blocks] lead from a pixel's upper
  // left neighbor to each block of its sum. The outputs of a band, `stride`
  // panel rows apart; the first one's upper left neighbor is at `corner`.
  void (*conv3_band)(const A* corner, BandSteps corner_steps,
                     const int64_t* offsets, int blocks, Band band, int stride,
                     const A* weights, int outputs, S* out, BandSteps out_steps,
                     int64_t out_pitch, Moments moments);
  // Gradients of the epilogue's pixels: of a band's row from `first_pixel`, +
  // stride, …, from panel rows `from`, from + 1, …; 32 outputs' weights are
  // `weights_step` apart. `y` gets the normalized pixels at rows `at`, at +
  // stride, …; its row i pairs pixels i and i + stride.
  void (*conv3_band_back)(const A* from, BandSteps from_steps,
                          const int64_t* offsets, int blocks, Band band,
                          const A* weights, int64_t weights_step,
                          const GradientEpilogue<S>& epilogue,
                          int64_t first_pixel, BandSteps pixel_steps,
                          int stride, Panel<A> y, int64_t at,
                          BandSteps at_steps);
  // w[c / 16][ky][o / 8][kx][8][16] += over the outputs of a band; those of y
  // are `stride` apart, and y begins at the first output's upper left neighbor.
  void (*conv3_weight_gradient)(Panel<A> y, BandSteps y_steps, int stride,
                                Panel<A> dy, BandSteps dy_steps, Band band,
                                int channels, int outputs, A* w);

  WinogradKernels<S> winograd2, winograd4;  // F(2x2,3x3), F(4x4,3x3)
  // Backward, in chunks of more tiles.
  WinogradKernels<S> winograd4_wide;

  // --- stem and classifier head (src/model/engine/kernels/stem.hpp). Maps
  // begin at the image's first pixel. A padded image is of values, or of pairs
  // when `pair` is 2, and so are `corner` and `pitch` of stem_row. Weights are
  // [outputs / 32][kStemBlocks][16 values][32].
  void (*stem_row)(const A* corner, int64_t pitch, int width, const A* weights,
                   int outputs, const StemConstants<A>& constants, S* out,
                   Moments moments);
  void (*stem_pool_row)(const FeatureMap<S>& map, int height, int width,
                        int pooled_y, S* out, int64_t out_pitch,
                        uint8_t* chosen, Moments moments);
  // Row y of the gradient of the pool's input as a panel of `width` rows;
  // `pooled` and `chosen` are the image's.
  void (*stem_scatter_row)(const GradientMap<S>& pooled, int64_t first_pixel,
                           int height, int width, int y, const uint8_t* chosen,
                           Panel<A> panel);
  // ReLU and BatchNorm's sums of such a row, whose pixels are `map`'s first.
  void (*stem_sums_row)(Panel<A> panel, const FeatureMap<S>& map, const A* mean,
                        int width, double* sum, double* product);
  // ReLU and BatchNorm's gradient of such a row, in place: a * d + b * x + c.
  // Its sums over the pixels of each class are added to sums[place][channels].
  void (*stem_gradient_row)(Panel<A> panel, const FeatureMap<S>& map,
                            const A* a, const A* b, const A* c, int width,
                            const uint8_t* place, double* sums);
  // w[outputs][kStemBlocks][16] += dy x windows
  void (*stem_weight_gradient_row)(Panel<A> dy, const A* corner, int64_t pitch,
                                   int width, int outputs, A* w);
  // Residual connections: out = relu(main + other) before their own relus, of
  // pixels first ..
  void (*residual)(const FeatureMap<S>& main, const FeatureMap<S>& other,
                   int64_t first, int n, S* out);
  // BatchNorm's two sums of a gradient that needs no relu: of d, of d * (x -
  // mean); added to.
  void (*residual_sums)(const S* d, const S* x, int channels, const A* mean,
                        int64_t first, int n, double* sum, double* product);
  void (*mean)(const FeatureMap<S>& map, int64_t first_pixel, int pixels,
               A* features);
  void (*mean_back)(const A* dfeatures, int64_t first_pixel, int pixels,
                    const GradientEpilogue<S>& epilogue);
};

// The sets of this processor, widest last: "generic", which is NEON on AArch64,
// then of "avx2", "avx512" and "avx512bf16", or of "neonbf16" and "sve256",
// what applies. "avx512bf16" and "neonbf16" differ from the set before them in
// bf16 alone.
std::vector<std::string> instruction_sets();

// The table of the instruction set `wanted`. "": the last one, but on x86-64
// LibTorch's ATEN_CPU_CAPABILITY decides (default, avx2, avx512), where it is
// set.
// ConfigError: unknown, or not of this processor.
template <class S>
const Kernels<S>& kernels(const std::string& wanted = "");

}  // namespace chexnet
