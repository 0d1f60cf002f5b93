// The codes of a block of deflate, as tables that the next bits of the input
// index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace chexnet {

constexpr int kMostCodeBits = 15;
constexpr int kEndOfBlockSymbol = 256;

// RFC 1951, 3.2.5: lengths of symbols 257 to 285, distances of symbols 0 to 29.
struct DeflateRange {
  uint16_t base;
  uint8_t extra;  // bits that follow the code and are added
};
inline constexpr std::array<DeflateRange, 29> kLengths{
    {{3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},  {8, 0},
     {9, 0},   {10, 0},  {11, 1},  {13, 1},  {15, 1}, {17, 1},
     {19, 2},  {23, 2},  {27, 2},  {31, 2},  {35, 3}, {43, 3},
     {51, 3},  {59, 3},  {67, 4},  {83, 4},  {99, 4}, {115, 4},
     {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}}};
inline constexpr std::array<DeflateRange, 30> kDistances{
    {{1, 0},     {2, 0},     {3, 0},      {4, 0},      {5, 1},
     {7, 1},     {9, 2},     {13, 2},     {17, 3},     {25, 3},
     {33, 4},    {49, 4},    {65, 5},     {97, 5},     {129, 6},
     {193, 6},   {257, 7},   {385, 7},    {513, 8},    {769, 8},
     {1025, 9},  {1537, 9},  {2049, 10},  {3073, 10},  {4097, 11},
     {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}}};

// A canonical Huffman code: symbols in the order of their codes.
struct HuffmanCode {
  std::array<uint16_t, kMostCodeBits + 1> count;  // [bits] codes of that length
  std::array<uint16_t, kMostCodeBits + 1> first;  // [bits] the lowest of them
  std::array<uint16_t, kMostCodeBits + 2> index;  // [bits] its index below
  std::array<uint16_t, 288> symbol;
  // The code as the input has it: first bit lowest.
  std::array<uint16_t, 288> bits;

  // From each symbol's length, 0 for none, at most 288. False: more codes than
  // there is room for, or fewer where zlib refuses it: a code that is not
  // `whole` may consist of nothing or of one symbol of one bit.
  bool assign(std::span<const uint8_t> lengths, bool whole);
  // Of all codes up to `table_bits` bits: symbol << 4 | bits; else 0.
  void fill(std::span<uint16_t> table, int table_bits) const;
};

struct SymbolAndBits {
  int symbol;  // -1: no code begins like this
  int bits;
};

// The result of one look-up: literals, then a match of `length` bytes (0: none)
// whose distance is `distance` + the bits of the input from `code_bits` to
// `total_bits`. Memory is the format: bytes 0 to 3 are copied as they are.
struct Pack {
  uint8_t literals[3];
  uint8_t length;
  uint8_t total_bits;       // 0: nothing fits here
  uint8_t code_and_number;  // code_bits | number of literals << 6
  uint16_t distance;
};
static_assert(sizeof(Pack) == 8);

constexpr int kPackBits = 11;  // 16 KiB: half of a level-1 cache
constexpr int kMostPackBits = kPackBits + 13;  // of total_bits
// A pack's match is a copy of 16 bytes: no longer, and not overlapping.
constexpr int kMostPackLength = 16;
// Packs without a match copy from here, and 0 bytes of it count.
constexpr int kIdleDistance = 512;

// The tables of one block.
struct DeflateTables {
  static constexpr int kLiteralBits = 11, kDistanceBits = 8;
  alignas(64) std::array<uint64_t, 1 << kPackBits> packs;  // Pack's bytes
  std::array<uint16_t, 1 << kLiteralBits> literal_table;
  std::array<uint16_t, 1 << kDistanceBits> distance_table;
  HuffmanCode literals, distances;

  // False: the lengths are not two codes.
  bool assign(std::span<const uint8_t> literal_lengths,
              std::span<const uint8_t> distance_lengths);

  SymbolAndBits literal_or_length(uint64_t bits) const;
  SymbolAndBits distance(uint64_t bits) const;
};

// Looks a code up: in its table, else bit by bit.
SymbolAndBits look_up(const HuffmanCode& code, std::span<const uint16_t> table,
                      uint64_t bits);

void fill_packs(DeflateTables& tables);

}  // namespace chexnet
