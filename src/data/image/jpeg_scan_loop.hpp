// The loop over a scan's blocks, compiled once for each instruction set.
//
// As in deflate_loop.hpp its speed is the time from one look-up to the next:
// shift, load, shift.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "jpeg_scan.hpp"
#include "jpeg_transform.hpp"

namespace chexnet {
namespace {  // one per file: a linker would keep one of two equal names

// The scan with its next 64 bits in a register, the first one highest. `count`
// of them are sure, at least 56 after a refill; the others are right, too, or
// 0.
struct ScanBits {
  const uint8_t* next;
  const uint8_t* last;  // nothing is read beyond it, where all is 0
  uint64_t bits = 0;
  uint64_t count = 0;

  void refill() {
    uint64_t more = 0;
    std::memcpy(&more, next, 8);
    if constexpr (std::endian::native == std::endian::little)
      more = __builtin_bswap64(more);
    bits |= more >> (count & 63);
    next += 7 - (count >> 3 & 7);
    next = std::min(next, last);
    count |= 56;
  }
  void skip(uint64_t taken) {
    bits <<= taken & 63;
    count -= taken;
  }
  // The number of `size` bits after a code of `code_bits`.
  int number(int code_bits, int size) {
    skip(static_cast<unsigned>(code_bits));
    const auto value = bits >> 1 >> (63 - size);
    skip(static_cast<unsigned>(size));
    return extended(static_cast<unsigned>(value), size);
  }
};

// Where the next number goes.
struct BlockPlace {
  int16_t* block;
  unsigned k = 0;  // in zigzag order; 0: a block begins
};

// One symbol, and its number. False: no such code, or a position beyond the
// block.
inline bool take_symbol(const JpegTables& tables, ScanBits& at,
                        BlockPlace& place) {
  const auto next = static_cast<uint32_t>(at.bits >> 48);
  if (place.k == 0) {
    const auto symbol = tables.dc_symbols.look_up(next);
    if (symbol.bits == 0) return false;
    place.block[0] = static_cast<int16_t>(at.number(symbol.bits, symbol.value));
    place.k = 1;
    return true;
  }
  const auto symbol = tables.ac_symbols.look_up(next);
  const int size = symbol.value & 15, run = symbol.value >> 4;
  if (symbol.bits == 0) return false;
  const auto number = static_cast<int16_t>(at.number(symbol.bits, size));
  if (symbol.value == 0) {
    place = {place.block + 64};
    return true;
  }
  place.k += static_cast<unsigned>(run);
  if (place.k > 63) return false;
  place.block[kZigzag[place.k++]] = number;
  if (place.k == 64) place = {place.block + 64};
  return true;
}

// A look-up's numbers. False: nothing was taken, as nothing fits into the
// index, or the block is full within the entry: after its 64th number other
// codes begin. Needs kIndexBits.
inline bool take_entry(const uint8_t*& entry, const JpegTables& tables,
                       ScanBits& at, BlockPlace& place) {
  const auto field = [&](size_t offset) { return unsigned{entry[offset]}; };
  const unsigned step = field(offsetof(BlockEntry, step));
  const unsigned bits = field(offsetof(BlockEntry, bits));
  const unsigned k = place.k + step;
  std::memcpy(
      &place.block[kZigzag[place.k + field(offsetof(BlockEntry, first_place))]],
      entry + offsetof(BlockEntry, first), sizeof(int16_t));
  std::memcpy(
      &place
           .block[kZigzag[place.k + field(offsetof(BlockEntry, second_place))]],
      entry + offsetof(BlockEntry, second), sizeof(int16_t));
  if ((k & kNothing) != 0) [[unlikely]]
    return false;
  at.skip(bits);
  const unsigned ended = step & kBlockEnded;
  entry = tables.entry(ended, at.bits);
  place.block += ended / 2;  // 64
  place.k = ended != 0 ? 0 : k;
  return true;
}

// As many blocks as there are from `begin` to `end`, which are 0.
inline bool take_blocks(const JpegTables& tables, ScanBits& position,
                        int16_t* begin, const int16_t* end) {
  constexpr int kLookups = 4;  // of a refill, with the index of the next one
  static_assert((kLookups + 1) * JpegTables::kIndexBits <= 56);
  ScanBits at = position;  // in registers
  BlockPlace place{begin};
  const uint8_t* entry = tables.entry(kBlockEnded, at.bits);
  const auto step = [&] { return take_entry(entry, tables, at, place); };
  while (place.block < end) {
    at.refill();
    if (place.block + ptrdiff_t{64} * kLookups <= end) {
      if (step() && step() && step() && step()) [[likely]]
        continue;
    } else if (step()) {
      continue;
    }
    at.refill();
    if (!take_symbol(tables, at, place)) return false;
    at.refill();
    entry = tables.entry(place.k == 0 ? kBlockEnded : 0, at.bits);
  }
  position = at;
  return true;
}

template <class Transform>
bool decode_scan(const JpegTables& tables, const JpegScan& scan,
                 GrayImage& into) {
  constexpr int kSide = Transform::kSide;
  constexpr int kTogether = 32;  // blocks that stay in the level-1 cache
  alignas(64) int16_t blocks[64 * kTogether + 64] = {};
  const uint8_t* const end = scan.bytes.data() + scan.bytes.size();
  ScanBits at{scan.bytes.data(), end + 8};
  at.refill();
  std::vector<uint8_t> below;  // of rows that the picture does not have
  Transform transform(scan.quantization);
  int dc = 0;
  for (int y = 0; y < scan.blocks_high; ++y) {
    std::array<uint8_t*, kSide> rows;
    for (int k = 0; k < kSide; ++k) {
      const int row = kSide * y + k;
      if (row < into.height()) {
        rows[k] = into.row(row);
      } else {
        below.resize(into.stride());
        rows[k] = below.data();
      }
    }
    for (int x = 0; x < scan.blocks_wide; x += kTogether) {
      const int number = std::min(kTogether, scan.blocks_wide - x);
      int16_t* const behind = blocks + ptrdiff_t{64} * number;
      if (!take_blocks(tables, at, blocks, behind)) return false;
      // A separate loop: a vector that is read right after the store of one of
      // its numbers waits for it.
      for (int16_t* block = blocks; block < behind; block += 64) {
        dc += block[0];
        if (dc < INT16_MIN || dc > INT16_MAX) return false;
        block[0] = static_cast<int16_t>(dc);
      }
      for (int16_t* block = blocks; block < behind; block += 64) {
        transform(block, rows);
        for (auto& row : rows) row += kSide;
      }
      std::memset(blocks, 0, sizeof blocks);
    }
  }
  // The last byte is filled up with ones, of which there are less than eight.
  const auto bits =
      8 * (at.next - scan.bytes.data()) - static_cast<int>(at.count & 63);
  return !transform.is_beyond() && (bits + 7) / 8 == std::ssize(scan.bytes);
}

inline bool decode_jpeg_scan(const JpegTables& tables, const JpegScan& scan,
                             GrayImage& into) {
  switch (scan.side) {
    case 1:
      return decode_scan<DcTransform>(tables, scan, into);
    case 2:
      return decode_scan<Transform<TwoPoints>>(tables, scan, into);
    default:
      return decode_scan<Transform<FourPoints>>(tables, scan, into);
  }
}

}  // namespace
}  // namespace chexnet
