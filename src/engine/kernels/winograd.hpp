// 3x3 convolution by Winograd F(2x2,3x3): Y = At [(G g Gt) . (Bt d B)] A, with
// 16 products for 4 outputs where the direct form needs 36 (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016). Backward with
// respect to the input is the same with flipped weights; with respect to the
// weights dU = sum over tiles of (A dY At) . (Bt d B), dg = Gt dU G.
#pragma once

#include "epilogue.hpp"

namespace chexnet {
namespace {

template <class S>
struct Winograd {
  using A = Accumulator<S>;
  static constexpr int L = kLanes<A>;
  static constexpr int kTiles = kWinogradTiles;

  struct TileCorner {
    int image, y, x;  // of the tile's first output
  };
  static CHEXNET_INLINE TileCorner corner_of(PaddedImage shape, int tile) {
    const int across = (shape.width + 1) / 2,
              in_image = across * ((shape.height + 1) / 2);
    const int rest = tile % in_image;
    return {tile / in_image, rest / across * 2, rest % across * 2};
  }

  // Bt over four values.
  static CHEXNET_INLINE void transform(Vec<A>& a, Vec<A>& b, Vec<A>& c,
                                       Vec<A>& d) {
    const Vec<A> x = a - c, y = b + c, z = c - b, w = b - d;
    a = x;
    b = y;
    c = z;
    d = w;
  }

  static void input(Panel<A> image, PaddedImage shape, int first, int tiles,
                    int channels, A* v) {
    const int64_t frequency = static_cast<int64_t>(channels) * kTiles;
    for (int i = 0; i < tiles; ++i) {
      const TileCorner at = corner_of(shape, first + i);
      const int64_t corner = shape.at(at.image, at.y - 1, at.x - 1);
      for (int c = 0; c < channels; c += L) {
        Vec<A> d[16];
#pragma GCC unroll 16
        for (int e = 0; e < 16; ++e)
          d[e] = get_by_channels(
              image, corner + int64_t{e / 4} * shape.pitch() + e % 4, c);
#pragma GCC unroll 4
        for (int e = 0; e < 4; ++e)
          transform(d[e], d[4 + e], d[8 + e], d[12 + e]);
#pragma GCC unroll 4
        for (int e = 0; e < 4; ++e)
          transform(d[4 * e], d[4 * e + 1], d[4 * e + 2], d[4 * e + 3]);
#pragma GCC unroll 16
        for (int e = 0; e < 16; ++e)
          put_by_channels<S, false>(Panel<A>{v + e * frequency, kTiles}, i, c,
                                    d[e]);
      }
    }
  }

  static void gradient(Panel<A> image, PaddedImage shape, int first, int tiles,
                       int channels, A* q) {
    const int64_t frequency = static_cast<int64_t>(channels) * kTiles;
    for (int i = 0; i < tiles; ++i) {
      const TileCorner at = corner_of(shape, first + i);
      const int64_t pixel = shape.at(at.image, at.y, at.x);
      for (int c = 0; c < channels; c += L) {
        const Vec<A> a = get_by_channels(image, pixel, c),
                     b = get_by_channels(image, pixel + 1, c),
                     d = get_by_channels(image, pixel + shape.pitch(), c),
                     e = get_by_channels(image, pixel + shape.pitch() + 1, c);
        const Vec<A> rows[4][2] = {
            {a, b}, {a + d, b + e}, {a - d, b - e}, {-d, -e}};
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          const Vec<A> x = rows[r][0], y = rows[r][1];
          const Vec<A> columns[4] = {x, x + y, x - y, -y};
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k)
            put_by_channels<S, false>(
                Panel<A>{q + (4 * r + k) * frequency, kTiles}, i, c,
                columns[k]);
        }
      }
    }
  }

  static void multiply(const A* v, int tiles, int channels, const A* u,
                       int first, int last, int outputs, A* m) {
    const int blocks = channels / kBlock;
    const BlockOffsets offsets(blocks, kTiles);
    for (int f = 0; f < 16; ++f)
      for (int o = first; o < last; o += kOutputs, m += kTiles * kOutputs)
        for (int t = 0; t < tiles; t += kGroup)
          multiply_group<A, false>(
              v + static_cast<int64_t>(f) * channels * kTiles + t * kBlock,
              offsets.values, blocks,
              u + (static_cast<int64_t>(f) * outputs + o) * channels,
              std::min(kGroup, tiles - t), m + t * kOutputs);
  }

  // At m A of one tile: four outputs.
  static CHEXNET_INLINE void outputs_of(const A* m, int64_t frequency,
                                        Vec<A> out[4]) {
    Vec<A> upper[4], lower[4];
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) {
      const Vec<A> a = load(m + e * frequency),
                   b = load(m + (4 + e) * frequency),
                   c = load(m + (8 + e) * frequency),
                   d = load(m + (12 + e) * frequency);
      upper[e] = a + b + c;
      lower[e] = b - c - d;
    }
    out[0] = upper[0] + upper[1] + upper[2];
    out[1] = upper[1] - upper[2] - upper[3];
    out[2] = lower[0] + lower[1] + lower[2];
    out[3] = lower[1] - lower[2] - lower[3];
  }
  // Calls use(e, y, x) for the tile's outputs that are in the map.
  template <class Use>
  static CHEXNET_INLINE void each_output(PaddedImage shape, TileCorner at,
                                         const Use& use) {
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) {
      const int y = at.y + e / 2, x = at.x + e % 2;
      if (y < shape.height && x < shape.width) use(e, y, x);
    }
  }
  static int64_t pixel(PaddedImage shape, int image, int y, int x) {
    return (static_cast<int64_t>(image) * shape.height + y) * shape.width + x;
  }

  static void output(const A* m, PaddedImage shape, int first, int tiles,
                     int outputs, S* out, int64_t pitch, Moments moments) {
    const int64_t frequency = static_cast<int64_t>(outputs) * kTiles;
    for (int o = 0; o < outputs; o += L) {
      const A* from = m + (o / kOutputs) * kTiles * kOutputs + o % kOutputs;
      Vec<A> tile[4];
      outputs_of(from, frequency, tile);
      ShiftedSums<A> sums(as_stored<S>(tile[0]));
      for (int i = 0; i < tiles; ++i) {
        const TileCorner at = corner_of(shape, first + i);
        outputs_of(from + i * kOutputs, frequency, tile);
        each_output(shape, at, [&](int e, int y, int x) {
          const Vec<A> v = as_stored<S>(tile[e]);
          store(out + pixel(shape, at.image, y, x) * pitch + o, v);
          sums.add(v);
        });
      }
      if (moments.sum != nullptr) sums.add_to(moments, o);
    }
  }

  static void output_back(const A* m, PaddedImage shape, int first, int tiles,
                          const GradientEpilogue<S>& epilogue,
                          int64_t first_pixel, Panel<A> y_panel) {
    const int outputs = epilogue.last - epilogue.first;
    const int64_t frequency = static_cast<int64_t>(outputs) * kTiles;
    for (int o = 0; o < outputs; o += L) {
      const A* from = m + (o / kOutputs) * kTiles * kOutputs + o % kOutputs;
      EpilogueLane<S> lane(epilogue, epilogue.first + o);
      for (int i = 0; i < tiles; ++i) {
        const TileCorner at = corner_of(shape, first + i);
        Vec<A> tile[4];
        outputs_of(from + i * kOutputs, frequency, tile);
        each_output(shape, at, [&](int e, int y, int x) {
          const Vec<A> value = lane.template pass<AccumulateMode::kStore>(
              epilogue, first_pixel + pixel(shape, at.image, y, x), tile[e]);
          put_by_channels<S, false>(y_panel, shape.at(at.image, y, x), o,
                                    value);
        });
      }
      lane.finish(epilogue, epilogue.first + o);
    }
  }

  static void weight_gradient(const A* q, int outputs, const A* v, int channels,
                              int tiles, A* w, int64_t pitch, bool add) {
    for (int f = 0; f < 16; ++f)
      gradient_tiles<A, false>(
          {const_cast<A*>(q) + static_cast<int64_t>(f) * outputs * kTiles,
           kTiles},
          outputs,
          {const_cast<A*>(v) + static_cast<int64_t>(f) * channels * kTiles,
           kTiles},
          channels, tiles, w + static_cast<int64_t>(f) * outputs * pitch, pitch,
          add);
  }
};

}  // namespace
}  // namespace chexnet
