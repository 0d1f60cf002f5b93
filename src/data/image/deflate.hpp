// Deflate streams (RFC 1951), made for filtered X-rays: there a fifth of all
// symbols are matches of about eight bytes among literals of three to five
// bits, in no order that a branch predictor learns. So one look-up yields up to
// three literals and a match, and its result is applied without a branch:
//
//   bits -> pack: [literal literal literal] [length distance] -> out
//
// Packs are made for each block (deflate_tables.hpp). What fits none of them
// (long codes, long matches, near ones, the ends of input and output) is
// decoded symbol by symbol, with every bound checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "deflate_tables.hpp"
#include "inflate.hpp"

namespace chexnet {

// Where a deflate stream is. `bits` holds the next `count` bits of the input,
// the first one lowest, and zeros above them; `next` is the byte after them.
struct DeflatePosition {
  const uint8_t* next;
  const uint8_t* end;
  uint64_t bits = 0;
  int count = 0;  // below 0 once more was taken than there is
  uint8_t* out;
  uint8_t* out_begin;
  uint8_t* out_end;
};

enum class DeflateStep { kGoOn, kEndOfBlock, kDamaged, kTooLong };

// One symbol, and a match's distance, with all checks.
DeflateStep deflate_symbol(const DeflateTables& tables, DeflatePosition& at);

// As many symbols as are far from the ends of input and output. kGoOn: an end
// is near. One function of each instruction set, the same code.
using DeflateLoop = DeflateStep (*)(const DeflateTables&, DeflatePosition&);
DeflateStep deflate_loop_plain(const DeflateTables&, DeflatePosition&);
DeflateStep deflate_loop_bmi2(const DeflateTables&, DeflatePosition&);
// Those that this processor has, the fastest first.
std::span<const DeflateLoop> deflate_loops();

// Fills `into` exactly; used: the deflate stream's bytes, when it is whole.
// Thread-safe.
InflateStatus inflate_deflate(std::span<const uint8_t> stream,
                              std::span<uint8_t> into, DeflateLoop loop,
                              size_t& used);

}  // namespace chexnet
