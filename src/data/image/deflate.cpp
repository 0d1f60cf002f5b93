#include "deflate.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <vector>

namespace chexnet {
namespace {

// At least 56 bits, or all that are left.
inline void refill(DeflatePosition& at) {
  if (at.end - at.next >= 8) [[likely]] {
    uint64_t more = 0;
    std::memcpy(&more, at.next, 8);
    const int bytes = (63 - at.count) / 8;
    more &= (uint64_t{1} << 8 * bytes) - 1;  // bytes are 7 at most
    at.bits |= more << at.count;
    at.next += bytes;
    at.count += 8 * bytes;
    return;
  }
  while (at.count < 56 && at.next < at.end) {
    at.bits |= uint64_t{*at.next++} << at.count;
    at.count += 8;
  }
}

// The next bits, at most 16; zeros after the input's end, where count falls
// below 0.
unsigned take(DeflatePosition& at, int bits) {
  const auto value =
      static_cast<unsigned>(at.bits & ((uint64_t{1} << bits) - 1));
  at.bits >>= bits;
  at.count -= bits;
  return value;
}

// Far from the end in steps of 16 bytes, of which the last goes over the
// match's end.
void copy_match(DeflatePosition& at, size_t length, size_t distance) {
  constexpr size_t kStep = 16;
  const uint8_t* from = at.out - distance;
  uint8_t* to = at.out;
  at.out += length;
  const auto room = static_cast<size_t>(at.out_end - at.out);
  if (distance >= kStep && room >= kStep) {
    for (; to < at.out; to += kStep, from += kStep)
      std::memcpy(to, from, kStep);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    while (to < at.out) *to++ = *from++;
  }
}

// Blocks and their codes (RFC 1951, 3.2.3 to 3.2.7) of one deflate stream after
// another.
class Decoder {
 public:
  InflateStatus inflate(DeflatePosition& at, DeflateLoop loop);

 private:
  // kGoOn: symbols follow.
  DeflateStep begin_block(DeflatePosition& at, int kind);
  DeflateStep stored_block(DeflatePosition& at);
  bool read_codes(DeflatePosition& at);
  bool read_lengths(DeflatePosition& at, std::span<uint8_t> lengths);
  void assign_fixed_codes();

  DeflateTables tables_;
  bool has_fixed_codes_ = false;  // a file of tiny blocks makes them once
};

DeflateStep Decoder::stored_block(DeflatePosition& at) {
  take(at, at.count % 8);
  const ptrdiff_t ahead = at.count / 8;  // whole bytes in the bit buffer
  at.next -= ahead;
  at.bits = 0;
  at.count = 0;
  if (at.end - at.next < 4) return DeflateStep::kDamaged;
  const unsigned length = at.next[0] | at.next[1] << 8;
  const unsigned inverse = at.next[2] | at.next[3] << 8;
  if ((length ^ inverse) != 0xFFFF) return DeflateStep::kDamaged;
  at.next += 4;
  const size_t here =
      std::min(size_t{length}, static_cast<size_t>(at.end - at.next));
  if (here > static_cast<size_t>(at.out_end - at.out))
    return DeflateStep::kTooLong;
  if (here < length) return DeflateStep::kDamaged;
  if (length > 0) std::memcpy(at.out, at.next, length);
  at.out += length;
  at.next += length;
  return DeflateStep::kEndOfBlock;
}

void Decoder::assign_fixed_codes() {
  if (has_fixed_codes_) return;
  std::array<uint8_t, 288> lengths;
  std::fill_n(lengths.begin(), 144, uint8_t{8});
  std::fill_n(lengths.begin() + 144, 112, uint8_t{9});
  std::fill_n(lengths.begin() + 256, 24, uint8_t{7});
  std::fill_n(lengths.begin() + 280, 8, uint8_t{8});
  std::array<uint8_t, 32> distances;
  distances.fill(5);
  [[maybe_unused]] const bool fine = tables_.assign(lengths, distances);
  assert(fine);
  has_fixed_codes_ = true;
}

// The lengths of both codes, one list: themselves in a code, with repeats.
bool Decoder::read_lengths(DeflatePosition& at, std::span<uint8_t> lengths) {
  static constexpr std::array<uint8_t, 19> kOrder{
      16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  refill(at);
  const unsigned number = take(at, 4) + 4;
  std::array<uint8_t, 19> own{};
  for (unsigned i = 0; i < number; ++i) {
    refill(at);
    own[kOrder[i]] = static_cast<uint8_t>(take(at, 3));
  }
  HuffmanCode code;
  constexpr int kBits = 7;
  std::array<uint16_t, 1 << kBits> table;
  if (at.count < 0 || !code.assign(own, true)) return false;
  code.fill(table, kBits);
  for (size_t have = 0; have < lengths.size();) {
    refill(at);
    const auto [symbol, bits] = look_up(code, table, at.bits);
    if (symbol < 0) return false;
    take(at, bits);
    size_t times = 1;
    auto length = static_cast<uint8_t>(symbol);
    if (symbol == 16) {
      if (have == 0) return false;
      length = lengths[have - 1];
      times = 3 + take(at, 2);
    } else if (symbol > 16) {
      length = 0;
      times = symbol == 17 ? 3 + take(at, 3) : 11 + take(at, 7);
    }
    if (at.count < 0 || times > lengths.size() - have) return false;
    std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(have), times, length);
    have += times;
  }
  return true;
}

bool Decoder::read_codes(DeflatePosition& at) {
  has_fixed_codes_ = false;
  const size_t literals = take(at, 5) + 257, distances = take(at, 5) + 1;
  if (literals > 286 || distances > 30) return false;
  std::array<uint8_t, 286 + 30> memory;
  const std::span<uint8_t> lengths(memory.data(), literals + distances);
  if (!read_lengths(at, lengths)) return false;
  if (lengths[kEndOfBlockSymbol] == 0) return false;
  return tables_.assign(lengths.first(literals), lengths.subspan(literals));
}

DeflateStep Decoder::begin_block(DeflatePosition& at, int kind) {
  if (at.count < 0) return DeflateStep::kDamaged;
  if (kind == 0) return stored_block(at);
  if (kind == 1) assign_fixed_codes();
  if (kind == 3 || (kind == 2 && !read_codes(at))) return DeflateStep::kDamaged;
  return DeflateStep::kGoOn;
}

InflateStatus Decoder::inflate(DeflatePosition& at, DeflateLoop loop) {
  for (bool last = false; !last;) {
    refill(at);
    last = take(at, 1) == 1;
    const auto kind = static_cast<int>(take(at, 2));
    DeflateStep step = begin_block(at, kind);
    while (step == DeflateStep::kGoOn) {
      step = loop(tables_, at);
      if (step == DeflateStep::kGoOn) step = deflate_symbol(tables_, at);
    }
    if (step == DeflateStep::kDamaged) return InflateStatus::kDamaged;
    if (step == DeflateStep::kTooLong) return InflateStatus::kTooLong;
  }
  return at.out == at.out_end ? InflateStatus::kWhole
                              : InflateStatus::kTooShort;
}

}  // namespace

DeflateStep deflate_symbol(const DeflateTables& tables, DeflatePosition& at) {
  refill(at);  // a match needs 48 bits
  const auto [symbol, bits] = tables.literal_or_length(at.bits);
  take(at, bits);
  if (symbol < 0 || at.count < 0) return DeflateStep::kDamaged;
  if (symbol == kEndOfBlockSymbol) return DeflateStep::kEndOfBlock;
  if (symbol < kEndOfBlockSymbol) {
    if (at.out == at.out_end) return DeflateStep::kTooLong;
    *at.out++ = static_cast<uint8_t>(symbol);
    return DeflateStep::kGoOn;
  }
  const auto range = static_cast<size_t>(symbol) - (kEndOfBlockSymbol + 1);
  if (range >= kLengths.size()) return DeflateStep::kDamaged;
  const size_t length = kLengths[range].base + take(at, kLengths[range].extra);
  const auto [far, far_bits] = tables.distance(at.bits);
  take(at, far_bits);
  if (far < 0 || static_cast<size_t>(far) >= kDistances.size())
    return DeflateStep::kDamaged;
  const DeflateRange distances = kDistances[static_cast<size_t>(far)];
  const size_t distance = distances.base + take(at, distances.extra);
  if (at.count < 0 || distance > static_cast<size_t>(at.out - at.out_begin))
    return DeflateStep::kDamaged;
  if (length > static_cast<size_t>(at.out_end - at.out))
    return DeflateStep::kTooLong;
  copy_match(at, length, distance);
  return DeflateStep::kGoOn;
}

std::span<const DeflateLoop> deflate_loops() {
  static const std::vector<DeflateLoop> loops = [] {
    std::vector<DeflateLoop> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2")) found.push_back(deflate_loop_bmi2);
#endif
    found.push_back(deflate_loop_plain);
    return found;
  }();
  return loops;
}

InflateStatus inflate_deflate(std::span<const uint8_t> stream,
                              std::span<uint8_t> into, DeflateLoop loop,
                              size_t& used) {
  thread_local const auto decoder = std::make_unique<Decoder>();
  DeflatePosition at{.next = stream.data(),
                     .end = stream.data() + stream.size(),
                     .out = into.data(),
                     .out_begin = into.data(),
                     .out_end = into.data() + into.size()};
  const InflateStatus status = decoder->inflate(at, loop);
  if (status == InflateStatus::kWhole)
    used = static_cast<size_t>(at.next - stream.data()) -
           static_cast<size_t>(at.count / 8);
  return status;
}

}  // namespace chexnet
