// The Huffman codes of a JPEG's scan (ITU-T T.81, annexes C and F), as tables
// that the next bits of the scan index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace chexnet {

// A canonical Huffman code: symbols in the order of their codes, which have 1
// to 16 bits, as a DHT segment has them.
struct JpegCode {
  std::array<uint8_t, 16> counts{};  // of codes with 1, 2, … bits
  std::array<uint8_t, 256> symbols{};

  bool operator==(const JpegCode&) const = default;
};

// Decodes symbol by symbol.
class JpegSymbols {
 public:
  struct Symbol {
    int value;  // the byte of the DHT segment
    int bits;   // 0: no code begins like this
  };

  // False: more codes than there is room for, or one that is all ones.
  bool assign(const JpegCode& code);
  // `next` is the scan's next 16 bits, the first one highest.
  Symbol look_up(uint32_t next) const;

 private:
  // Of codes with 1, 2, … bits: the first value after them, aligned as `next`
  // is, and what to add to a code for its symbol's index.
  std::array<uint32_t, 16> end_{}, shift_{};
  std::array<uint8_t, 256> symbols_{};
};

// T.81, F.2.2.1 (EXTEND): a number of `size` bits that begins with 0 is below
// zero.
constexpr int extended(unsigned bits, int size) {
  const int number = static_cast<int>(bits);
  return size > 0 && number < 1 << (size - 1) ? number - (1 << size) + 1
                                              : number;
}

// The result of one look-up: up to two numbers that are not 0, and the mark
// that the rest of the block is 0. The first number of a block is the
// difference of its DC coefficient to the block before. Positions count from
// the next one in zigzag order. An entry without a second number has a 0 there.
struct BlockEntry {
  int16_t first = 0, second = 0;
  uint8_t bits = 0;
  uint8_t first_place = 0, second_place = 0;
  uint8_t step = 0;  // positions it fills | kBlockEnded; or kNothing
};
constexpr int kBlockEnded = 128, kNothing = 64;
static_assert(sizeof(BlockEntry) == 8);

// The tables of a scan of one component: entries for the middle of a block,
// then those for its begin, so that an offset chooses.
struct JpegTables {
  static constexpr int kIndexBits = 11;
  static constexpr size_t kEntries = 1 << kIndexBits;
  alignas(64) std::array<BlockEntry, kEntries * 2> entries;
  JpegSymbols dc_symbols, ac_symbols;

  // `ended`: 0, or kBlockEnded where a block begins; `bits`: the scan's next
  // ones, the first one highest.
  const uint8_t* entry(unsigned ended, uint64_t bits) const {
    constexpr size_t kBegins = kEntries * sizeof(BlockEntry);
    return reinterpret_cast<const uint8_t*>(entries.data()) +
           kBegins / kBlockEnded * ended +
           (bits >> (64 - kIndexBits)) * sizeof(BlockEntry);
  }

  // Costs some 50 us; nothing is done for the codes that it has already.
  // False: one of them is no code, or has symbols that no such scan has.
  bool assign(const JpegCode& dc, const JpegCode& ac);

 private:
  JpegCode dc_, ac_;  // of the tables
  bool is_filled_ = false;
};

}  // namespace chexnet
