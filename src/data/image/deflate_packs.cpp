// Packs by the number of bits of their codes, T = 1, 2, …, kPackBits. A table
// of T bits is the table of T - 1 bits twice, with all packs of just T bits
// over it; so an index without a code of T bits keeps the longest pack that its
// first bits make. A pack of T bits is
//
//   a literal | a match | a pack of one or two literals and one of these
//
// and two parts of it meet at bit p, for each p below T.
#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

#include "deflate_tables.hpp"

namespace chexnet {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Part {
  uint64_t pack;  // Pack's bytes
  uint32_t code;  // as the input has it: first bit lowest
};

// Parts of `bits` bits: no two codes are equal, so there are at most 2^bits.
class Row {
 public:
  explicit Row(int bits = 0) : parts_(size_t{1} << bits) {}
  void clear() { size_ = 0; }
  void push_back(const Part& part) {
    assert(size_ < parts_.size());
    parts_[size_++] = part;
  }
  const Part* begin() const { return parts_.data(); }
  const Part* end() const { return parts_.data() + size_; }
  size_t size() const { return size_; }

 private:
  std::vector<Part> parts_;
  size_t size_ = 0;
};

struct Parts : std::array<Row, kPackBits + 1> {  // [bits]
  Parts() {
    for (int bits = 0; bits <= kPackBits; ++bits)
      (*this)[static_cast<size_t>(bits)] = Row(bits);
  }
};

uint64_t bytes_of(const Pack& pack) { return std::bit_cast<uint64_t>(pack); }

uint64_t literal_pack(unsigned symbol, int bits) {
  const auto code = static_cast<uint8_t>(bits);
  return bytes_of({{static_cast<uint8_t>(symbol), 0, 0},
                   0,
                   code,
                   static_cast<uint8_t>(code | 1 << 6),
                   kIdleDistance});
}

void add_literals(const HuffmanCode& code, Parts& parts) {
  for (int bits = 1; bits <= kPackBits; ++bits) {
    const auto b = static_cast<size_t>(bits);
    parts[b].clear();
    for (size_t at = code.index[b]; at < code.index[b + 1]; ++at) {
      if (code.symbol[at] >= kEndOfBlockSymbol) break;
      parts[b].push_back({literal_pack(code.symbol[at], bits), code.bits[at]});
    }
  }
}

// A length that is known with its `bits` first bits, and every distance.
void add_matches(const HuffmanCode& distances, int length, int bits,
                 uint32_t code, Parts& matches) {
  for (int b = 1; bits + b <= kPackBits; ++b) {
    const auto row = static_cast<size_t>(b);
    for (size_t at = distances.index[row]; at < distances.index[row + 1];
         ++at) {
      if (distances.symbol[at] >= kDistances.size()) continue;
      const auto [base, extra] = kDistances[distances.symbol[at]];
      const int total = bits + b + extra;  // kMostPackBits at most
      if (base < kMostPackLength) continue;
      const Pack pack{{0, 0, 0},
                      static_cast<uint8_t>(length),
                      static_cast<uint8_t>(total),
                      static_cast<uint8_t>(bits + b),
                      base};
      const uint32_t distance_code = distances.bits[at];
      matches[static_cast<size_t>(bits) + row].push_back(
          {bytes_of(pack), code | distance_code << bits});
    }
  }
}

void add_matches(const HuffmanCode& literals, const HuffmanCode& distances,
                 Parts& matches) {
  for (auto& row : matches) row.clear();
  for (int bits = 1; bits <= kPackBits; ++bits) {
    const auto b = static_cast<size_t>(bits);
    for (size_t at = literals.index[b]; at < literals.index[b + 1]; ++at) {
      const auto range =
          static_cast<size_t>(literals.symbol[at]) - (kEndOfBlockSymbol + 1);
      if (range >= kLengths.size()) continue;  // also a literal
      const auto [base, extra] = kLengths[range];
      if (base + (1 << extra) - 1 > kMostPackLength) continue;
      for (int more = 0; more < 1 << extra; ++more)
        add_matches(distances, base + more, bits + extra,
                    literals.bits[at] | static_cast<uint32_t>(more) << bits,
                    matches);
    }
  }
}

struct Scratch {
  Parts one, two, matches;  // one literal, two literals, a match
};

constexpr uint64_t kLiteralBytes = 0xFFFFFF;

// The pack of `tail` after `number` literals of `bits` bits together, without
// those literals: they are or-ed in. Pack's bytes are counted from the lowest.
uint64_t behind(const Part& tail, int number, int bits) {
  const auto b = static_cast<uint64_t>(bits), n = static_cast<uint64_t>(number);
  const uint64_t literals = (tail.pack & kLiteralBytes) << 8 * n;
  return ((tail.pack & ~kLiteralBytes) | literals) +
         (b << 32 | b << 40 | n << 46);
}

// Each of `heads`, of `number` literals and `bits` bits, with each of `tails`.
// Where one of the two has few parts, it is the outer loop: every end of an
// inner one is mispredicted.
template <class Use>
void for_pairs(const Row& heads, int number, int bits, const Row& tails,
               Use use) {
  const auto pair = [&](const Part& head, uint64_t rest, const Part& tail) {
    use({rest | (head.pack & kLiteralBytes), head.code | tail.code << bits});
  };
  if (heads.size() < tails.size()) {
    for (const Part& head : heads)
      for (const Part& tail : tails)
        pair(head, behind(tail, number, bits), tail);
    return;
  }
  for (const Part& tail : tails) {
    const uint64_t rest = behind(tail, number, bits);
    for (const Part& head : heads) pair(head, rest, tail);
  }
}

}  // namespace

void fill_packs(DeflateTables& tables) {
  thread_local Scratch parts;
  add_literals(tables.literals, parts.one);
  add_matches(tables.literals, tables.distances, parts.matches);
  uint64_t* packs = tables.packs.data();
  packs[0] = 0;
  for (int bits = 1; bits <= kPackBits; ++bits) {
    const auto t = static_cast<size_t>(bits);
    const size_t half = size_t{1} << (t - 1);
    std::copy_n(packs, half, packs + half);
    const auto put = [packs](const Part& part) {
      packs[part.code] = part.pack;
    };
    for (const Part& part : parts.one[t]) put(part);
    for (const Part& part : parts.matches[t]) put(part);
    Row& two = parts.two[t];
    two.clear();
    for (size_t p = 1; p < t; ++p) {
      const auto head_bits = static_cast<int>(p);
      const Row &one = parts.one[t - p], &matches = parts.matches[t - p];
      for_pairs(parts.one[p], 1, head_bits, one,
                [&](const Part& part) { two.push_back(part); });
      for_pairs(parts.two[p], 2, head_bits, one, put);
      for_pairs(parts.one[p], 1, head_bits, matches, put);
      for_pairs(parts.two[p], 2, head_bits, matches, put);
    }
    for (const Part& part : two) put(part);
  }
}

}  // namespace chexnet
