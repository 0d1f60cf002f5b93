// Two pictures with at most five different signs of 64 agree wholly in one of
// six disjoint parts of the signs (five differences cannot spoil six parts). So
// for each part the pictures are sorted by it, and only those within one group
// of equal parts are compared:
//
//   signs    |part 0|part 1|part 2|part 3|part 4|part 5|
//   copy       ==     x      ==     x      xx     x
//
// That copy is equal in parts 0 and 2, and found twice.
#include "near_duplicates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>
#include <numeric>
#include <tuple>

#include "chexnet/data/image/resize.hpp"

namespace chexnet {
namespace {

constexpr int kSide = 32;               // pixels the frequencies are taken of
constexpr int kFrequencies = 9;         // lowest of each direction
constexpr int kMostSigns = 5;           // that differ
constexpr int kParts = kMostSigns + 1;  // of the signs: one has no difference
constexpr int kMostLevels = 2;          // gray levels of the mean difference
constexpr size_t kWindow = 4096;

using Pixels = std::array<uint8_t, size_t{kSide} * kSide>;
using Cosines = std::array<std::array<double, kSide>, kFrequencies>;

Cosines make_cosines() {
  Cosines cosines;
  for (size_t f = 0; f < cosines.size(); ++f)
    for (size_t x = 0; x < kSide; ++x)
      cosines[f][x] =
          std::cos(std::numbers::pi * static_cast<double>((2 * x + 1) * f) /
                   (2 * kSide));
  return cosines;
}

// Of the discrete cosine transform (DCT-II), [vertical][horizontal].
double frequency(const Pixels& pixels, size_t vertical, size_t horizontal) {
  static const Cosines kCosines = make_cosines();
  double sum = 0;
  for (size_t y = 0; y < kSide; ++y) {
    double row = 0;
    for (size_t x = 0; x < kSide; ++x)
      row += kCosines[horizontal][x] * pixels[y * kSide + x];
    sum += kCosines[vertical][y] * row;
  }
  return sum;
}

// The 8 x 8 lowest, with one more instead of the mean, which is the picture's
// brightness.
uint64_t hash_of(const Pixels& pixels) {
  uint64_t hash = 0;
  for (size_t v = 0; v < 8; ++v)
    for (size_t h = 0; h < 8; ++h) {
      const double value = frequency(pixels, v + h == 0 ? 8 : v, h);
      if (value > 0) hash |= uint64_t{1} << (8 * v + h);
    }
  return hash;
}

// Frequencies of every kind in each: chests are so alike that many signs are
// nearly always the same. Of nih352's pairs 3 % have a part in common, so
// ChestX-ray14 takes 2e8 comparisons of hashes.
uint64_t signs_of_part(int part) {
  uint64_t signs = 0;
  for (int v = 0; v < 8; ++v)
    for (int h = 0; h < 8; ++h)
      if ((v + 2 * h) % kParts == part) signs |= uint64_t{1} << (8 * v + h);
  return signs;
}

int levels_between(const PictureSketch& a, const PictureSketch& b) {
  int sum = 0;
  for (size_t i = 0; i < a.tiny.size(); ++i)
    sum += std::abs(a.tiny[i] - b.tiny[i]);
  return sum;
}

// Sets that are joined, each known by its smallest member.
class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t of(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    const size_t one = of(a), other = of(b);
    parent_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<size_t> parent_;
};

// `members` have one part of the hash in common; equal hashes are neighbors.
void join_alike(std::span<const PictureSketch> pictures,
                std::span<const size_t> members, Sets& sets) {
  for (size_t i = 0; i < members.size(); ++i) {
    const size_t end = std::min(members.size(), i + 1 + kWindow);
    for (size_t j = i + 1; j < end; ++j)
      if (nearly_same(pictures[members[i]], pictures[members[j]]))
        sets.join(members[i], members[j]);
  }
}

}  // namespace

PictureSketch sketch_of(const GrayImage& image) {
  Pixels pixels;
  resize(image, {0, 0, image.width(), image.height()}, kSide,
         ResizeKind::kAntialias, pixels.data());
  PictureSketch sketch;
  sketch.hash = hash_of(pixels);
  for (size_t y = 0; y < PictureSketch::kSide; ++y)
    for (size_t x = 0; x < PictureSketch::kSide; ++x) {
      const uint8_t* corner = &pixels[2 * y * kSide + 2 * x];
      const int sum = corner[0] + corner[1] + corner[kSide] + corner[kSide + 1];
      sketch.tiny[y * PictureSketch::kSide + x] =
          static_cast<uint8_t>((sum + 2) / 4);
    }
  return sketch;
}

bool nearly_same(const PictureSketch& a, const PictureSketch& b) {
  if (std::popcount(a.hash ^ b.hash) > kMostSigns) return false;
  return levels_between(a, b) <= kMostLevels * static_cast<int>(a.tiny.size());
}

std::vector<std::vector<size_t>> nearly_same_groups(
    std::span<const PictureSketch> pictures) {
  Sets sets(pictures.size());
  std::vector<size_t> order(pictures.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int part = 0; part < kParts; ++part) {
    const uint64_t signs = signs_of_part(part);
    const auto key = [&](size_t i) { return pictures[i].hash & signs; };
    std::ranges::sort(order, {}, [&](size_t i) {
      return std::tuple(key(i), pictures[i].hash, i);
    });
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && key(order[end]) == key(order[begin])) ++end;
      join_alike(pictures, std::span(order).subspan(begin, end - begin), sets);
    }
  }

  std::map<size_t, std::vector<size_t>> members;
  for (size_t i = 0; i < pictures.size(); ++i) members[sets.of(i)].push_back(i);
  std::vector<std::vector<size_t>> groups;
  for (auto& [first, group] : members)
    if (group.size() > 1) groups.push_back(std::move(group));
  return groups;
}

}  // namespace chexnet
