// The scan of a plain gray JPEG (baseline, one component, no restarts), decoded
// for one reason: at a part of its size most of the time goes into Huffman
// codes, and TurboJPEG takes them one by one, 6 ns each. Here one look-up
// yields two coefficients and the end of a block (jpeg_tables.hpp).
//
//   scan bytes, without stuffing -> codes -> block of 8 x 8 -> side x side
//   pixels
//
// What is not plain, or not sound, is left to TurboJPEG: it judges every file
// that is refused, and what is decoded here equals its pixels bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "chexnet/data/image/gray_image.hpp"
#include "jpeg_tables.hpp"

namespace chexnet {

// Positions in a block, in zigzag order (T.81, figure A.6); those beyond the
// 64th, to which an entry may write, are all the element after the block.
constexpr int kBehindBlock = 64;
inline constexpr std::array<uint8_t, 128> kZigzag = [] {
  std::array<uint8_t, 128> places{};
  places.fill(kBehindBlock);
  int row = 0, column = 0;
  for (int k = 0; k < 64; ++k) {
    places[k] = static_cast<uint8_t>(8 * row + column);
    const bool up = (row + column) % 2 == 0;
    int& along = up ? column : row;
    int& against = up ? row : column;
    if (along == 7) {
      ++against;
    } else {
      ++along;
      if (against > 0) --against;
    }
  }
  return places;
}();

struct JpegScan {
  std::span<const uint8_t> bytes;              // kScanRoom more may be read
  std::array<uint16_t, 64> quantization = {};  // [row, column]
  int blocks_wide, blocks_high;
  int side;  // 1, 2 or 4: pixels of a block's side
};
constexpr size_t kScanRoom = 16;  // read ahead

// Fills `into`, which has its size already. False: the scan is not what its
// header says, or has numbers that no picture has; `into` holds anything then.
// One function of each instruction set, the same code.
using JpegScanDecoder = bool (*)(const JpegTables&, const JpegScan&,
                                 GrayImage& into);
bool decode_jpeg_scan_plain(const JpegTables&, const JpegScan&, GrayImage&);
bool decode_jpeg_scan_avx2(const JpegTables&, const JpegScan&, GrayImage&);
// Those that this processor has, the fastest first.
std::span<const JpegScanDecoder> jpeg_scan_decoders();

// Decodes a plain gray JPEG at side/8 of its size. False where it is not plain
// or not sound; `into` holds anything then. Thread-safe.
bool decode_gray_jpeg(std::span<const std::byte> bytes, int side,
                      JpegScanDecoder decoder, GrayImage& into);

}  // namespace chexnet
