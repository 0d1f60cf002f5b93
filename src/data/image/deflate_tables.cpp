#include "deflate_tables.hpp"

#include <algorithm>
#include <cassert>

namespace chexnet {
namespace {

// The 16 lowest bits in the other order: of neighbors, pairs, nibbles, bytes.
unsigned reversed(unsigned x) {
  x = (x & 0x5555) << 1 | (x >> 1 & 0x5555);
  x = (x & 0x3333) << 2 | (x >> 2 & 0x3333);
  x = (x & 0x0F0F) << 4 | (x >> 4 & 0x0F0F);
  return (x & 0xFF) << 8 | (x >> 8 & 0xFF);
}

}  // namespace

bool HuffmanCode::assign(std::span<const uint8_t> lengths, bool whole) {
  assert(lengths.size() <= symbol.size());
  count.fill(0);
  for (const uint8_t length : lengths) ++count[length];
  count[0] = 0;
  int room = 1, longest = 0;  // codes of this length that are still free
  unsigned code = 0, place = 0;
  for (int length = 1; length <= kMostCodeBits; ++length) {
    const auto l = static_cast<size_t>(length);
    room = room * 2 - count[l];
    if (room < 0) return false;
    if (count[l] > 0) longest = length;
    code = (code + count[l - 1]) << 1;
    first[l] = static_cast<uint16_t>(code);
    index[l] = static_cast<uint16_t>(place);
    place += count[l];
  }
  index[kMostCodeBits + 1] = static_cast<uint16_t>(place);
  if (room > 0 && (whole || longest > 1)) return false;
  auto next = index;
  for (size_t s = 0; s < lengths.size(); ++s) {
    const size_t length = lengths[s];
    if (length == 0) continue;
    const size_t at = next[length]++;
    symbol[at] = static_cast<uint16_t>(s);
    bits[at] = static_cast<uint16_t>(
        reversed(first[length] + static_cast<unsigned>(at) - index[length]) >>
        (16 - length));
  }
  return true;
}

// A table of one bit more is the table twice, with the codes of that length
// over it.
void HuffmanCode::fill(std::span<uint16_t> table, int table_bits) const {
  table[0] = 0;
  for (int length = 1; length <= table_bits; ++length) {
    const size_t half = size_t{1} << (length - 1);
    std::copy_n(table.begin(), half, table.begin() + static_cast<long>(half));
    const auto l = static_cast<size_t>(length);
    for (size_t at = index[l]; at < index[l + 1]; ++at)
      table[bits[at]] = static_cast<uint16_t>(symbol[at] << 4 | length);
  }
}

bool DeflateTables::assign(std::span<const uint8_t> literal_lengths,
                           std::span<const uint8_t> distance_lengths) {
  if (!literals.assign(literal_lengths, false) ||
      !distances.assign(distance_lengths, false))
    return false;
  literals.fill(literal_table, kLiteralBits);
  distances.fill(distance_table, kDistanceBits);
  fill_packs(*this);
  return true;
}

SymbolAndBits look_up(const HuffmanCode& code, std::span<const uint16_t> table,
                      uint64_t bits) {
  const unsigned entry = table[bits & (table.size() - 1)];
  if (entry != 0)
    return {static_cast<int>(entry >> 4), static_cast<int>(entry & 15)};
  // Codes of one length follow each other, and longer ones are larger.
  const unsigned value = reversed(static_cast<unsigned>(bits));
  for (size_t length = 1; length <= kMostCodeBits; ++length) {
    const unsigned at = (value >> (16 - length)) - code.first[length];
    if (at < code.count[length])
      return {code.symbol[code.index[length] + at], static_cast<int>(length)};
  }
  return {-1, 0};
}

SymbolAndBits DeflateTables::literal_or_length(uint64_t bits) const {
  return look_up(literals, literal_table, bits);
}

SymbolAndBits DeflateTables::distance(uint64_t bits) const {
  return look_up(distances, distance_table, bits);
}

}  // namespace chexnet
