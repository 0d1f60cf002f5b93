#include "chexnet/core/philox.hpp"

#include "support/catch.hpp"

using namespace chexnet;

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST_CASE("Philox gives the published numbers") {
  CHECK(
      philox4x32({0, 0, 0, 0}, {0, 0}) ==
      std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(
      philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                 {0xffffffff, 0xffffffff}) ==
      std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 {0xa4093822, 0x299f31d0}) ==
      std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("numbers below n are uniform and in range") {
  Random random(7, Purpose::kTest, 3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);
}

TEST_CASE("normal numbers have mean 0 and variance 1") {
  Random random(1, Purpose::kTest, 1);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / kCount) < 0.02);
  CHECK(std::abs(squares / kCount - 1) < 0.02);
}

TEST_CASE("streams of other seeds, purposes and positions differ") {
  const auto first = Random(1, Purpose::kTest, 1).next();
  CHECK(Random(1, Purpose::kTest, 1).next() == first);
  CHECK(Random(2, Purpose::kTest, 1).next() != first);
  CHECK(Random(1, Purpose::kOrder, 1).next() != first);
  CHECK(Random(1, Purpose::kTest, 1 + (uint64_t{1} << 32)).next() != first);
}
