// zlib also reads every deflate stream here: the same outcome, the same bytes,
// the same end, by every loop of this processor.
#include "data/image/deflate.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "chexnet/core/philox.hpp"
#include "support/catch.hpp"
#include "support/deflate_writer.hpp"
#include "support/zlib_inflate.hpp"

using namespace chexnet;

namespace {

using ByteVector = std::vector<uint8_t>;
using enum InflateStatus;

InflateStatus inflated(const ByteVector& stream, size_t size) {
  const ZlibInflated theirs = zlib_inflated(stream, size);
  for (const DeflateLoop loop : deflate_loops()) {
    ByteVector ours(size);
    size_t used = 0;
    const InflateStatus status = inflate_deflate(stream, ours, loop, used);
    if (status != theirs.status) FAIL("another outcome than zlib's");
    if (status != kWhole) continue;
    if (ours != theirs.bytes) FAIL("other bytes than zlib's");
    if (used != theirs.used) FAIL("another end than zlib's");
  }
  return theirs.status;
}

// By zlib; `most` + 1 where it is longer.
size_t size_of(const ByteVector& stream, size_t most = size_t{1} << 22) {
  return zlib_inflated(stream, most).bytes.size();
}

// The size is zlib's, and the deflate stream is whole.
void check_whole(const ByteVector& stream) {
  const size_t size = size_of(stream);
  CHECK(inflated(stream, size) == kWhole);
  CHECK(inflated(stream, size + 1) == kTooShort);
  if (size > 0) CHECK(inflated(stream, size - 1) == kTooLong);
}

// Lengths of a whole code of `symbols` symbols: a tree whose leaves are split
// at random.
std::vector<uint8_t> whole_code(size_t symbols, Random& random) {
  std::vector<uint8_t> leaves{0};
  while (leaves.size() < symbols) {
    const auto among = static_cast<uint32_t>(leaves.size());
    // Of two leaves the upper one, so that most codes are short.
    uint8_t& leaf = leaves[std::max(random.below(among), random.below(among))];
    if (leaf == kMostCodeBits) continue;
    const auto deeper = ++leaf;
    leaves.push_back(deeper);
  }
  for (size_t i = leaves.size(); i > 1; --i)
    std::swap(leaves[i - 1], leaves[random.below(static_cast<uint32_t>(i))]);
  return leaves;
}

// Symbols of all kinds in codes of all shapes. `far`: at most so far back.
ByteVector made_stream(Random& random, size_t least, size_t far) {
  DeflateWriter writer;
  size_t written = 0;
  while (written < least) {
    auto literals = whole_code(260 + random.below(27), random);
    auto distances = whole_code(2 + random.below(29), random);
    if (literals[256] == 0) continue;
    writer.begin_block(literals, distances);
    const uint32_t matches = random.below(3);  // in 16 symbols
    for (uint32_t left = 20 + random.below(3000); left > 0; --left) {
      const size_t symbol =
          random.below(16) < matches * 4
              ? 257 + random.below(static_cast<uint32_t>(literals.size() - 257))
              : random.below(256);
      if (symbol < 256) {
        writer.symbol(symbol);
        ++written;
        continue;
      }
      const size_t d = random.below(static_cast<uint32_t>(distances.size()));
      const DeflateRange length = kLengths[symbol - 257];
      const DeflateRange distance = kDistances[d];
      const size_t most = distance.base + (size_t{1} << distance.extra) - 1;
      if (most > std::min(written, far)) continue;
      const uint32_t more = random.below(1u << length.extra);
      writer.symbol(symbol);
      writer.bits(more, length.extra);
      writer.distance(d);
      writer.bits(random.below(1u << distance.extra), distance.extra);
      written += length.base + more;
    }
    writer.symbol(kEndOfBlockSymbol);
  }
  return writer.end();
}

long mutations() {
  const char* text = std::getenv("CHEXNET_MUTATIONS");
  return text == nullptr ? 20000 : std::atol(text);
}

}  // namespace

TEST_CASE("deflate: random codes of every shape give zlib's bytes") {
  Random random(3, Purpose::kTest, 1);
  for (int i = 0; i < 60; ++i)
    check_whole(made_stream(random, 2000 + 2000 * (i % 5), 40000));
  // Distances to the window's end, and beyond the first 32 KiB.
  for (int i = 0; i < 4; ++i) check_whole(made_stream(random, 90000, 40000));
}

TEST_CASE("deflate: mutated streams end as zlib says", "[arithmetic]") {
  Random random(3, Purpose::kTest, 2);
  std::array<long, 4> seen{};
  ByteVector good;
  size_t size = 0;
  for (long i = 0; i < mutations(); ++i) {
    if (i % 200 == 0) {
      good = made_stream(random, 700 + random.below(3000), 40000);
      size = size_of(good);
    }
    ByteVector bad = good;
    const auto length = static_cast<uint32_t>(bad.size());
    for (uint32_t n = 1 + random.below(3); n > 0; --n) {
      // Half of them after the codes, where a change makes another deflate
      // stream.
      const uint32_t at = random.below(2) == 0
                              ? random.below(length)
                              : length / 2 + random.below(length - length / 2);
      bad[at] ^= static_cast<uint8_t>(1u << random.below(8));
    }
    if (i % 7 == 0) bad.resize(random.below(length));
    if (i % 11 == 0) bad.insert(bad.end(), {0, 1, 2});
    const InflateStatus status =
        inflated(bad, i % 3 == 0 ? size_of(bad, 20000) : size);
    ++seen[static_cast<size_t>(status)];
  }
  for (const long count : seen) CHECK(count > 0);
}

TEST_CASE("deflate: every length at every near distance, and cut anywhere") {
  for (const size_t before : {1, 700}) {
    DeflateWriter writer;
    writer.begin_fixed_block();
    for (size_t i = 0; i < before; ++i) writer.symbol(i * 7 % 256);
    for (size_t length = 257; length <= 285; ++length)
      for (size_t distance = 0; distance < (before == 1 ? 1 : 14); ++distance) {
        writer.symbol(length);
        const uint8_t extra = kLengths[length - 257].extra;
        writer.bits((1u << extra) - 1, extra);  // 284 and all ones: 258, too
        writer.distance(distance);
        writer.bits(0, kDistances[distance].extra);
      }
    writer.symbol(kEndOfBlockSymbol);
    const ByteVector stream = writer.end();
    check_whole(stream);
    const size_t size = size_of(stream);
    for (size_t cut = 0; cut < stream.size(); ++cut)
      CHECK(inflated({stream.begin(), stream.begin() + static_cast<long>(cut)},
                     size) == kDamaged);
    for (size_t less = 0; less < std::min<size_t>(size, 900); ++less)
      CHECK(inflated(stream, size - 1 - less) == kTooLong);
  }
}

TEST_CASE("deflate: stored blocks between others, and damaged ones") {
  const ByteVector abc{'a', 'b', 'c'};
  DeflateWriter writer;
  writer.stored_block(abc);
  writer.stored_block({});
  writer.begin_fixed_block();
  writer.symbol('d');
  writer.symbol(258);  // four bytes from the stored block
  writer.distance(3);
  writer.symbol(kEndOfBlockSymbol);
  writer.stored_block(ByteVector(65535, 7));
  check_whole(writer.end());
  CHECK(inflated({1, 0, 0, 0xFF, 0xFF}, 0) == kWhole);
  CHECK(inflated({1, 0, 0, 0xFF, 0xFF}, 1) == kTooShort);
  CHECK(inflated({1, 1, 0, 0xFF, 0xFF, 'a'}, 1) == kDamaged);
  CHECK(inflated({1, 2, 0, 0xFD, 0xFF, 'a'}, 2) == kDamaged);  // a byte missing
  CHECK(inflated({1, 2, 0, 0xFD, 0xFF, 'a', 'b'}, 1) == kTooLong);
  CHECK(inflated({1, 0, 0, 0xFF}, 0) == kDamaged);
  CHECK(inflated({}, 0) == kDamaged);
  CHECK(inflated({7}, 0) == kDamaged);   // kind 3
  CHECK(inflated({3, 0}, 0) == kWhole);  // a fixed block without symbols
}

TEST_CASE("deflate: what fixed codes have and streams may not use") {
  const auto stream = [](std::initializer_list<size_t> symbols, size_t distance,
                         unsigned more, int bits) {
    DeflateWriter writer;
    writer.begin_fixed_block();
    for (const size_t symbol : symbols) writer.symbol(symbol);
    writer.distance(distance);
    writer.bits(more, bits);
    for (int i = 0; i < 100; ++i) writer.symbol('x');
    writer.symbol(kEndOfBlockSymbol);
    return writer.end();
  };
  CHECK(inflated(stream({'a', 257}, 0, 0, 0), 104) == kWhole);
  CHECK(inflated(stream({'a', 257}, 1, 0, 0), 104) == kDamaged);  // too far
  CHECK(inflated(stream({257}, 0, 0, 0), 103) == kDamaged);
  CHECK(inflated(stream({'a', 257}, 30, 0, 0), 104) == kDamaged);
  CHECK(inflated(stream({'a', 257}, 31, 0, 0), 104) == kDamaged);
  CHECK(inflated(stream({'a', 286}, 0, 0, 0), 104) == kDamaged);
  CHECK(inflated(stream({'a', 287}, 0, 0, 0), 104) == kDamaged);
}

TEST_CASE("deflate: codes that are none") {
  const auto block = [](const std::vector<uint8_t>& literals,
                        const std::vector<uint8_t>& distances,
                        std::initializer_list<size_t> symbols) {
    DeflateWriter writer;
    writer.begin_block(literals, distances);
    for (const size_t symbol : symbols) writer.symbol(symbol);
    return writer;
  };
  std::vector<uint8_t> one(257, 0);
  one[256] = 1;  // one symbol of one bit: not whole, and allowed
  CHECK(inflated(block(one, {0}, {256}).end(), 0) == kWhole);
  one[256] = 2;
  CHECK(inflated(block(one, {0}, {256}).end(), 0) == kDamaged);
  one[256] = 0;
  one['a'] = one['b'] = 1;  // no end of the block
  CHECK(inflated(block(one, {0}, {'a'}).end(), 1) == kDamaged);
  std::vector<uint8_t> some(258, 0);
  some['a'] = 1;
  some[256] = some[257] = 2;
  CHECK(inflated(block(some, {0}, {'a', 256}).end(), 1) == kWhole);
  // No distance at all, and a match.
  CHECK(inflated(block(some, {0}, {'a', 257, 256}).end(), 4) == kDamaged);
  // One distance of one bit: a 0 is it, a 1 is nothing.
  auto near = block(some, {1}, {'a', 257});
  near.bits(0, 1);
  near.symbol(256);
  CHECK(inflated(near.end(), 4) == kWhole);
  auto none = block(some, {1}, {'a', 257});
  none.bits(1, 1);
  none.symbol(256);
  CHECK(inflated(none.end(), 4) == kDamaged);
  CHECK(inflated(block(some, {2}, {'a', 256}).end(), 1) == kDamaged);
  CHECK(inflated(block(some, {1, 1, 1}, {'a', 256}).end(), 1) == kDamaged);
  some['b'] = 1;  // more codes than there is room for
  CHECK(inflated(block(some, {0}, {'a', 256}).end(), 1) == kDamaged);
  some['b'] = 0;
  some.resize(287, 0);  // 286 are most
  CHECK(inflated(block(some, {0}, {'a', 256}).end(), 1) == kDamaged);
  some.resize(286);
  CHECK(inflated(block(some, std::vector<uint8_t>(30, 0), {'a', 256}).end(),
                 1) == kWhole);
  CHECK(inflated(block(some, std::vector<uint8_t>(31, 0), {'a', 256}).end(),
                 1) == kDamaged);
}
