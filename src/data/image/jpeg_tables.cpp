#include "jpeg_tables.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace chexnet {
namespace {

constexpr int kRoom = JpegTables::kIndexBits;

// A symbol of a block with the number after it.
struct Symbol {
  int number = 0;
  int bits = 0;   // 0: not within the index
  int place = 0;  // of the number: the count of zeros before it
  bool ends_block = false;
};
using Symbols = std::vector<Symbol>;  // [index]

Symbol with_number(const JpegSymbols::Symbol& code, int size, unsigned index) {
  const int bits = code.bits + size;
  if (code.bits == 0 || bits > kRoom) return {};
  const unsigned number = index >> (kRoom - bits) & ((1u << size) - 1);
  return {.number = extended(number, size), .bits = bits};
}

Symbol difference_of(const JpegSymbols& codes, unsigned index) {
  const auto code = codes.look_up(index << (16 - kRoom));
  return with_number(code, code.value, index);
}

Symbol coefficient_of(const JpegSymbols& codes, unsigned index) {
  const auto code = codes.look_up(index << (16 - kRoom));
  Symbol symbol = with_number(code, code.value & 15, index);
  symbol.place = code.value >> 4;
  symbol.ends_block = symbol.bits > 0 && code.value == 0;
  return symbol;
}

// A first symbol with as many coefficients after it as fit.
BlockEntry entry_of(const Symbol& first, const Symbols& coefficients,
                    unsigned index) {
  BlockEntry entry{.step = kNothing};
  if (first.bits == 0) return entry;
  int bits = 0, step = 0;
  bool ends = false;
  const auto take = [&](const Symbol& symbol, int16_t& number, uint8_t& place) {
    bits += symbol.bits;
    ends = symbol.ends_block;
    place = static_cast<uint8_t>(step + symbol.place);
    if (ends) return;
    number = static_cast<int16_t>(symbol.number);
    step += symbol.place + 1;
  };
  const auto next = [&] {
    const auto& found = coefficients[(index << bits) % coefficients.size()];
    return bits + found.bits <= kRoom ? found : Symbol{};
  };
  take(first, entry.first, entry.first_place);
  entry.second_place = static_cast<uint8_t>(step);
  if (!ends && next().bits > 0) take(next(), entry.second, entry.second_place);
  if (!ends && next().ends_block) {
    bits += next().bits;
    ends = true;
  }
  entry.bits = static_cast<uint8_t>(bits);
  entry.step = static_cast<uint8_t>(step | (ends ? kBlockEnded : 0));
  return entry;
}

// Not above T.81, tables F.1 and F.2, of 8-bit samples.
bool is_difference(int symbol) { return symbol <= 11; }

// Zeros and a number of up to 10 bits; 15 of them without a number, or the end
// of the block.
bool is_coefficient(int symbol) {
  const int size = symbol & 15, run = symbol >> 4;
  return size <= 10 && (size > 0 || run == 0 || run == 15);
}

template <class Is>
bool all_symbols(const JpegCode& code, const Is& is) {
  const auto number =
      std::accumulate(code.counts.begin(), code.counts.end(), 0);
  return std::all_of(code.symbols.begin(), code.symbols.begin() + number, is);
}

}  // namespace

bool JpegSymbols::assign(const JpegCode& code) {
  symbols_ = code.symbols;
  uint32_t next = 0, index = 0;
  for (unsigned bits = 1; bits <= 16; ++bits) {
    const unsigned count = code.counts[bits - 1];
    shift_[bits - 1] = index - next;
    next += count;
    index += count;
    if (index > symbols_.size() || (count > 0 && next >= 1u << bits))
      return false;
    end_[bits - 1] = next << (16 - bits);
    next <<= 1;
  }
  return true;
}

JpegSymbols::Symbol JpegSymbols::look_up(uint32_t next) const {
  unsigned bits = 1;  // without a branch: it would be mispredicted
  for (const uint32_t end : end_) bits += next >= end ? 1 : 0;
  if (bits > 16) return {0, 0};
  const unsigned code = next >> (16 - bits);
  return {symbols_[code + shift_[bits - 1]], static_cast<int>(bits)};
}

bool JpegTables::assign(const JpegCode& dc, const JpegCode& ac) {
  if (is_filled_ && dc == dc_ && ac == ac_) return true;
  is_filled_ = false;
  if (!dc_symbols.assign(dc) || !all_symbols(dc, is_difference) ||
      !ac_symbols.assign(ac) || !all_symbols(ac, is_coefficient))
    return false;
  Symbols coefficients(kEntries);
  for (unsigned index = 0; index < coefficients.size(); ++index)
    coefficients[index] = coefficient_of(ac_symbols, index);
  for (unsigned index = 0; index < coefficients.size(); ++index) {
    entries[index] = entry_of(coefficients[index], coefficients, index);
    entries[kEntries + index] =
        entry_of(difference_of(dc_symbols, index), coefficients, index);
  }
  dc_ = dc;
  ac_ = ac;
  is_filled_ = true;
  return true;
}

}  // namespace chexnet
