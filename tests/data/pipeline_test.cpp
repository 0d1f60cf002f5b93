// The steps of Dell's pipelines one by one, on small inputs.
#include "chexnet/data/pipeline.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
using Rows = std::vector<uint32_t>;

namespace {

Shards eight_files() {  // files of 5, 4, 5, 4 … records; record 10 f + i
  Shards files;
  for (uint32_t f = 0; f < 8; ++f) {
    auto& file = files.emplace_back();
    for (uint32_t i = 0; i < 5 - f % 2; ++i) file.push_back(10 * f + i);
  }
  return files;
}

}  // namespace

TEST_CASE("shard takes every size-th item from rank on") {
  CHECK(every_nth(Rows{0, 1, 2, 3, 4, 5, 6}, 3, 1) == Rows{1, 4});
  CHECK(every_nth(Rows{0, 1, 2}, 1, 0) == Rows{0, 1, 2});
}

TEST_CASE(
    "interleave takes one record from each open file in turn and refills its "
    "slots") {
  const Shards files = {{0, 1, 2}, {10, 11}, {20, 21, 22}, {30}};
  CHECK(interleave(files, 1) == Rows{0, 1, 2, 10, 11, 20, 21, 22, 30});
  CHECK(interleave(files, 2) == Rows{0, 10, 1, 11, 2, 20, 30, 21, 22});
  CHECK(interleave(files, 4) == Rows{0, 10, 20, 30, 1, 11, 21, 2, 22});
  CHECK(interleave(files, 10) == interleave(files, 4));
  CHECK(interleave({{}, {1}, {}}, 2) == Rows{1});
}

TEST_CASE("a shuffle buffer moves nothing forward by more than its size") {
  Rows items(100);
  std::iota(items.begin(), items.end(), 0u);
  Random random(1, Purpose::kTest, 1);
  const Rows out = shuffle_in_buffer(items, 10, random);
  CHECK(out != items);
  for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] <= i + 9);
  Rows sorted = out;
  std::ranges::sort(sorted);
  CHECK(sorted == items);
  Random other(1, Purpose::kTest, 1);
  CHECK(shuffle_in_buffer(items, 0, other) == items);
}

TEST_CASE(
    "new: ranks see their own files, each record once an epoch, decoding "
    "nothing else") {
  std::multiset<uint32_t> all;
  size_t records = 0;
  for (const auto& file : eight_files()) records += file.size();
  for (int rank = 0; rank < 3; ++rank) {
    const PipelineSampler sampler(eight_files(), {false, 2, 6},
                                  {.seed = 7, .rank = rank, .world_size = 3});
    for (const auto row : sampler.epoch_order(0)) {
      CHECK(row / 10 % 3 == static_cast<uint32_t>(rank));
      all.insert(row);
    }
    CHECK(sampler.epoch_order(0) != sampler.epoch_order(1));
    CHECK(sampler.at(4).row == sampler.epoch_order(0)[4]);
    Rows discarded = {1};
    sampler.discarded(4, discarded);
    CHECK(discarded.empty());
  }
  CHECK(all.size() == records);
  CHECK(std::set(all.begin(), all.end()).size() == records);
  CHECK(error_of<ConfigError>([] {
          PipelineSampler(eight_files(), {}, {.world_size = 9});
        }).find("8 shards for 9 ranks") != std::string::npos);
}

TEST_CASE("old: every rank decodes everything and keeps its share") {
  size_t records = 0;
  for (const auto& file : eight_files()) records += file.size();
  std::multiset<uint32_t> kept;
  for (int rank = 0; rank < 4; ++rank) {
    const PipelineSampler sampler(eight_files(), {true, 10, 6},
                                  {.seed = 7, .rank = rank, .world_size = 4});
    const size_t own = sampler.epoch_order(0).size();
    std::multiset<uint32_t> decoded;
    for (uint64_t t = 0; t < own; ++t) {
      const Sample sample = sampler.at(t);
      CHECK(sample.position == 4 * t + static_cast<uint64_t>(rank));
      kept.insert(sample.row);
      decoded.insert(sample.row);
      Rows discarded;
      sampler.discarded(t, discarded);
      decoded.insert(discarded.begin(), discarded.end());
    }
    CHECK(decoded.size() == records);
    CHECK(std::set(decoded.begin(), decoded.end()).size() == records);
  }
  CHECK(kept.size() == records);
}

TEST_CASE(
    "pipelines go on at any position and are the same for the same ranks") {
  for (const bool old : {false, true}) {
    const PipelineSampler from_start(eight_files(), {old, 3, 5},
                                     {.seed = 7, .rank = 1, .world_size = 2});
    const PipelineSampler resumed(
        eight_files(), {old, 3, 5},
        {.seed = 7, .first_position = 40, .rank = 1, .world_size = 2});
    for (uint64_t t = 0; t < 50; ++t) {
      CHECK(resumed.at(t).row == from_start.at(t + 20).row);
      CHECK(resumed.at(t).position == from_start.at(t + 20).position);
    }
  }
}
