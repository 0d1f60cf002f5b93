// The shape of the grids of kernels/batch_norm.cu.
#pragma once

#include <algorithm>
#include <cstdint>

namespace chexnet {

// Vectors of 16 bytes and rows of a block, blocks over the channels and over
// the rows.
struct KernelGrid {
  unsigned block_vectors, block_rows, channel_blocks, row_blocks;
};

// For a map of `rows` times `vectors`, at least one of each: blocks of at most
// `threads`, about `blocks` in all, of which none is without a row or a vector.
// The last one over the channels may have less vectors than threads. Sums over
// row_blocks have the same order wherever this is equal.
inline KernelGrid kernel_grid(int64_t rows, int64_t vectors, int64_t threads,
                              int64_t blocks) {
  // A block of few vectors has few sums of other blocks to add in the end; of
  // many, long pieces of memory to read.
  constexpr int64_t kMostVectors = 16;
  int64_t width = std::min(vectors, kMostVectors);
  while (vectors % width != 0) --width;
  // Short pieces are slow to read, and their many blocks over the channels
  // leave multiprocessors without one: better some idle threads, at most a
  // sixteenth.
  const auto across_of = [&](int64_t w) { return (vectors + w - 1) / w; };
  if (width <= 8 && width < vectors) {
    width = kMostVectors;
    while ((across_of(width) * width - vectors) * 16 > vectors) --width;
  }
  const int64_t height = threads / width, across = across_of(width);
  const int64_t down = std::clamp<int64_t>(
      (rows + height - 1) / height, 1, std::max<int64_t>(blocks / across, 1));
  return {static_cast<unsigned>(width), static_cast<unsigned>(height),
          static_cast<unsigned>(across), static_cast<unsigned>(down)};
}

}  // namespace chexnet
