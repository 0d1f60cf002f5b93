// The loop over packs, compiled once for each instruction set.
//
// Its speed is the time from one look-up to the next: shift, mask, load. So the
// next look-up comes first, before the refill and before the output of this
// one.
//
//   after a refill: 56 bits = kMostPackBits of a pack + an index and more
#pragma once

#include <cstddef>
#include <cstring>
#if defined(__BMI2__)
#include <immintrin.h>
#endif

#include "deflate.hpp"

namespace chexnet {
namespace {  // one per file: a linker would keep one of two equal names

static_assert(56 - kMostPackBits >= kPackBits);

// What a pass of the loop writes at most, a pack or a symbol and the bytes
// after it that do not count, and what it reads of the input: three refills.
constexpr int kOutMargin = 258 + 2 * kMostPackLength;
constexpr int kInMargin = 32;

// The position with its bit buffer in registers. `count` is right in its lowest
// six bits; above it `bits` repeats what the next refill brings.
struct FastPosition {
  const uint8_t* next;
  uint64_t bits;
  uint64_t count;
  uint8_t* out;

  void refill() {
    uint64_t more = 0;
    std::memcpy(&more, next, 8);
    bits |= more << (count & 63);
    next += 7 - (count >> 3 & 7);
    count |= 56;
  }

  void skip(unsigned taken) {
    bits >>= taken & 63;
    count -= taken;
  }

  void load(const DeflatePosition& at) {
    next = at.next;
    bits = at.bits;
    count = static_cast<uint64_t>(at.count);
    out = at.out;
    refill();
  }

  void store(DeflatePosition& at) const {
    const auto whole = static_cast<unsigned>(count & 63);
    at.next = next - whole / 8;
    at.count = static_cast<int>(whole % 8);
    at.bits = bits & ((1u << at.count) - 1);
    at.out = out;
  }
};

// The lowest `number` bits, below 64.
inline uint64_t lowest_bits(uint64_t bits, uint64_t number) {
#if defined(__BMI2__)
  return _bzhi_u64(bits, static_cast<unsigned>(number));  // GCC makes it three
#else
  return bits & ((uint64_t{1} << number) - 1);
#endif
}

struct LookUp {
  const uint8_t* pack;
  uint64_t total_bits;  // of the pack
};

// Literals and match of a pack, whose code and distance `bits` begins with;
// false: its distance is too far.
inline bool write_pack(const LookUp& found, uint64_t bits,
                       const uint8_t* out_begin, uint8_t*& out) {
  const uint8_t* const pack = found.pack;
  const uint64_t code = pack[offsetof(Pack, code_and_number)];
  uint16_t base = 0;
  std::memcpy(&base, pack + offsetof(Pack, distance), 2);
  const uint64_t taken = lowest_bits(bits, found.total_bits);
  const uint64_t distance = base + (taken >> (code & 63));
  std::memcpy(out, pack, 4);
  out += code >> 6;
  if (distance > static_cast<size_t>(out - out_begin)) [[unlikely]]
    return false;
  std::memcpy(out, out - distance, kMostPackLength);
  out += pack[offsetof(Pack, length)];
  return true;
}

// The commonest case without a pack: codes in the tables, a match that is not
// near. False: nothing was done. Needs 39 bits.
inline bool take_symbol(const DeflateTables& tables, const uint8_t* out_begin,
                        FastPosition& at) {
  const unsigned entry =
      tables.literal_table[at.bits % tables.literal_table.size()];
  const unsigned symbol = entry >> 4;
  unsigned bits = entry & 15;
  if (bits == 0) return false;
  if (symbol < kEndOfBlockSymbol) {
    at.skip(bits);
    *at.out++ = static_cast<uint8_t>(symbol);
    return true;
  }
  const unsigned range = symbol - (kEndOfBlockSymbol + 1);
  if (range >= kLengths.size()) return false;  // also the end of the block
  const auto take = [&](const DeflateRange& of) {
    const auto more = static_cast<unsigned>(at.bits >> bits);
    bits += of.extra;
    return of.base + (more & ((1u << of.extra) - 1));
  };
  const unsigned length = take(kLengths[range]);
  const unsigned far =
      tables.distance_table[(at.bits >> bits) % tables.distance_table.size()];
  bits += far & 15;
  if (far == 0 || far >> 4 >= kDistances.size()) return false;
  const unsigned distance = take(kDistances[far >> 4]);
  constexpr unsigned kStep = 16;
  if (distance < kStep || distance > static_cast<size_t>(at.out - out_begin))
    return false;
  at.skip(bits);
  const uint8_t* const end = at.out + length;
  for (uint8_t* to = at.out; to < end; to += kStep)
    std::memcpy(to, to - distance, kStep);
  at.out += length;
  return true;
}

inline DeflateStep deflate_loop(const DeflateTables& tables,
                                DeflatePosition& position) {
  const auto* packs = reinterpret_cast<const uint8_t*>(tables.packs.data());
  const uint8_t* const out_begin = position.out_begin;
  if (position.end - position.next < kInMargin ||
      position.out_end - position.out < kOutMargin ||
      position.out - out_begin < kIdleDistance)
    return DeflateStep::kGoOn;
  const uint8_t* const in_last = position.end - kInMargin;
  const uint8_t* const out_last = position.out_end - kOutMargin;
  // Local, so that no store to `out` is taken for one to it.
  FastPosition at{};
  at.load(position);
  const auto look_up_pack = [&]() -> LookUp {
    const uint8_t* pack = packs + at.bits % (1 << kPackBits) * sizeof(Pack);
    return {pack, pack[offsetof(Pack, total_bits)]};
  };
  LookUp next = look_up_pack();
  while (at.next <= in_last && at.out <= out_last) {  // 56 bits are there
    if (next.total_bits != 0) [[likely]] {
      const LookUp found = next;
      const uint64_t bits = at.bits;
      at.skip(static_cast<unsigned>(found.total_bits));
      next = look_up_pack();
      at.refill();
      if (!write_pack(found, bits, out_begin, at.out))
        return DeflateStep::kDamaged;
      continue;
    }
    if (take_symbol(tables, out_begin, at)) {
      at.refill();
    } else {
      at.store(position);
      const DeflateStep step = deflate_symbol(tables, position);
      if (step != DeflateStep::kGoOn) return step;
      at.load(position);
    }
    next = look_up_pack();
  }
  at.store(position);
  return DeflateStep::kGoOn;
}

}  // namespace
}  // namespace chexnet
