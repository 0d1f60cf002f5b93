// Blocks of 8 x 8 coefficients to 4 x 4, 2 x 2 or 1 x 1 pixels, as libjpeg's
// jidctred.c computes them, to the last bit: its inverse DCTs of fewer points,
// whose constants are from Loeffler, Ligtenberg and Moschytz (ICASSP 1989).
// Columns first, then rows:
//
//   8 x 8 coefficients -> side x 8, eight columns a vector -> side x side
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace chexnet {
namespace {  // one per file: it is compiled for each instruction set

// The compiler makes them of what the instruction set has.
using Shorts = int16_t __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(32)));
// Sums of numbers beyond the limits may be too long; they do not count.
using Sums = uint32_t __attribute__((vector_size(32)));
using FourSums = uint32_t __attribute__((vector_size(16)));
using FourInts = int32_t __attribute__((vector_size(16)));

// Numbers of 13 fractional bits; those between the passes have 2.
constexpr int kFraction = 13, kBetween = 2;
constexpr int fixed(double x) {
  return static_cast<int>(x * (1 << kFraction) + 0.5);
}

// Weights of a line's eight coefficients in its output points, which are
// symmetric: point k and its mirror are even + odd and even - odd.
using Line = std::array<int, 8>;
struct TwoPoints {
  static constexpr int kSide = 2;
  static constexpr int kShift = kFraction + 2;
  static constexpr std::array<Line, 1> kEven{{{4 << kFraction}}};
  static constexpr std::array<Line, 1> kOdd{
      {{0, fixed(3.624509785), 0, -fixed(1.272758580), 0, fixed(0.850430095), 0,
        -fixed(0.720959822)}}};
};
struct FourPoints {
  static constexpr int kSide = 4;
  static constexpr int kShift = kFraction + 1;
  static constexpr std::array<Line, 2> kEven{
      {{2 << kFraction, 0, fixed(1.847759065), 0, 0, 0, -fixed(0.765366865)},
       {2 << kFraction, 0, -fixed(1.847759065), 0, 0, 0, fixed(0.765366865)}}};
  static constexpr std::array<Line, 2> kOdd{
      {{0, fixed(2.562915447), 0, fixed(0.899976223), 0, -fixed(0.601344887), 0,
        -fixed(0.509795579)},
       {0, fixed(1.061594337), 0, -fixed(2.172734803), 0, fixed(1.451774981), 0,
        -fixed(0.211164243)}}};
};

// TurboJPEG's vectors hold 16 bits between the passes. Nothing there is larger
// where coefficients are within this limit, by the sum of a point's weights
// (19 of FourPoints). A picture's are below 1,311 and half a step.
constexpr int kMostCoefficient = 1700;

// The first pass has the quantization in its weights.
template <class Of>
class Transform {
 public:
  static constexpr int kSide = Of::kSide;

  explicit Transform(const std::array<uint16_t, 64>& quantization) {
    for (size_t row = 0; row < 8; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        const int step = quantization[8 * row + column];
        limits_[row][column] =
            static_cast<int16_t>(kMostCoefficient / std::max(step, 1));
        for (size_t k = 0; k < kHalf; ++k) {
          even_[k][row][column] = weight(step * Of::kEven[k][row]);
          odd_[k][row][column] = weight(step * Of::kOdd[k][row]);
        }
      }
    }
  }

  void operator()(const int16_t* block,
                  const std::array<uint8_t*, kSide>& rows) {
    std::array<Shorts, 8> lines;
    std::memcpy(lines.data(), block, sizeof lines);
    for (size_t row = 0; row < 8; ++row)
      beyond_ |= (lines[row] > limits_[row]) | (lines[row] < -limits_[row]);
    std::array<Sums, kSide> between;
    for (size_t k = 0; k < kHalf; ++k) {
      Sums even{}, odd{};
      for (size_t row = 0; row < 8; ++row) {
        const auto line =
            reinterpret_cast<Sums>(__builtin_convertvector(lines[row], Ints));
        if (Of::kEven[k][row] != 0) even += line * even_[k][row];
        if (Of::kOdd[k][row] != 0) odd += line * odd_[k][row];
      }
      constexpr int kBits = Of::kShift - kBetween;
      between[k] = reinterpret_cast<Sums>(rounded<Ints>(even + odd, kBits));
      between[kSide - 1 - k] =
          reinterpret_cast<Sums>(rounded<Ints>(even - odd, kBits));
    }
    for (size_t y = 0; y < kSide; y += 2) write_two(&between[y], &rows[y]);
  }

  // Of one of the blocks so far a coefficient is beyond its limit.
  bool is_beyond() const {
    bool found = false;
    for (int k = 0; k < 8; ++k) found = found || beyond_[k] != 0;
    return found;
  }

 private:
  static constexpr size_t kHalf = kSide / 2;

  static constexpr uint32_t weight(int number) {
    return static_cast<uint32_t>(number);
  }

  template <class Vector, class Sum>
  static Vector rounded(Sum x, int bits) {
    return reinterpret_cast<Vector>(x + (1u << (bits - 1))) >> bits;
  }

  static Sums vector_of(const Line& line) {
    Sums vector;
    std::memcpy(&vector, line.data(), sizeof vector);
    return vector;
  }

  // The second pass of two lines: their points are sums over a vector, four of
  // them at a time.
  static void write_two(const Sums* between, uint8_t* const* rows) {
    for (size_t k = 0; k < kHalf; ++k) {
      const Sums even = vector_of(Of::kEven[k]), odd = vector_of(Of::kOdd[k]);
      const Sums a = between[0] * even, b = between[0] * odd;
      const Sums c = between[1] * even, d = between[1] * odd;
      const FourInts x = rounded<FourInts>(sums(a + b, a - b, c + d, c - d),
                                           Of::kShift + kBetween + 3) +
                         128;
      for (int y = 0; y < 2; ++y) {
        rows[y][k] = byte_of(x[2 * y]);
        rows[y][kSide - 1 - k] = byte_of(x[2 * y + 1]);
      }
    }
  }

  static uint8_t byte_of(int x) {
    return static_cast<uint8_t>(std::clamp(x, 0, 255));
  }

  // Of each vector the sum of its elements.
  static FourSums sums(Sums a, Sums b, Sums c, Sums d) {
    const auto fold = [](Sums x, Sums y) {
      return __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13) +
             __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
    };
    const Sums ab = fold(a, b), cd = fold(c, d);
    const Sums all =
        __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
        __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(all, all, 0, 1, 2, 3) +
           __builtin_shufflevector(all, all, 4, 5, 6, 7);
  }

  std::array<std::array<Sums, 8>, kHalf> even_, odd_;  // [point][row]
  std::array<Shorts, 8> limits_;  // of a coefficient's size, [row]
  Shorts beyond_{};
};

// To one pixel: of the DC coefficient alone.
class DcTransform {
 public:
  static constexpr int kSide = 1;

  explicit DcTransform(const std::array<uint16_t, 64>& quantization)
      : step_(quantization[0]) {}
  void operator()(const int16_t* block, const std::array<uint8_t*, 1>& rows) {
    const int dc = block[0] * step_;
    is_beyond_ = is_beyond_ || dc < -kMostCoefficient || dc > kMostCoefficient;
    rows[0][0] =
        static_cast<uint8_t>(std::clamp(((dc + 4) >> 3) + 128, 0, 255));
  }
  bool is_beyond() const { return is_beyond_; }

 private:
  int step_;
  bool is_beyond_ = false;
};

}  // namespace
}  // namespace chexnet
