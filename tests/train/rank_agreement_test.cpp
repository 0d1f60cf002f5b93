#include "train/rank_agreement.hpp"

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/parity_run.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

std::vector<PlacementRow> hosts(int count) {
  std::vector<PlacementRow> rows(static_cast<size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    auto& row = rows[static_cast<size_t>(rank)];
    row.rank = rank;
    row.host = "node" + std::to_string(rank / 2);
  }
  return rows;
}

// One bit of the first, a middle and the last number of a buffer, and back.
void check_bits(const at::Tensor& flat, const std::function<uint64_t()>& sum) {
  const uint64_t before = sum();
  auto* words = static_cast<uint32_t*>(flat.data_ptr());
  const auto count = flat.numel();
  for (const int64_t at : {int64_t{0}, count / 2, count - 1})
    for (const uint32_t bit : {0U, 1U, 22U, 23U, 31U}) {
      words[at] ^= 1U << bit;
      CHECK(sum() != before);
      words[at] ^= 1U << bit;
    }
  CHECK(sum() == before);
}

}  // namespace

TEST_CASE("the ranks that differ are those outside the largest group") {
  using Sums = std::vector<uint64_t>;
  using Ranks = std::vector<int>;
  CHECK(dissenters(Sums{7}).empty());
  CHECK(dissenters(Sums{7, 7, 7, 7}).empty());
  CHECK(dissenters(Sums{7, 7, 8}) == Ranks{2});
  CHECK(dissenters(Sums{8, 7, 9, 7}) == Ranks{0, 2});
  CHECK(dissenters(Sums{7, 8}) == Ranks{0, 1});
  CHECK(dissenters(Sums{7, 7, 8, 8}) == Ranks{0, 1, 2, 3});
  CHECK(dissenters(Sums{7, 8, 9}) == Ranks{0, 1, 2});
}

TEST_CASE("any bit of what a rank trains with changes its sum") {
  Network network(network_spec("densenet121"), 14,
                  {.precision = Precision::kFp32});
  network.parameters().initialize(1);
  const auto comm = solo_communicator();
  TrainConfig config;
  config.ema = 0.9;
  TrainStep step(network, *comm, {config, equal_weights()});
  step.average().begin();
  const Parameters& parameters = network.parameters();
  const auto sum = [&] { return state_sum(parameters, step); };
  check_bits(parameters.flat_values(), sum);
  check_bits(parameters.flat_running(), sum);
  check_bits(step.average().values(), sum);
  check_bits(step.average().running(), sum);
  REQUIRE(step.optimizer().slots().size() == 2);
  for (const auto& [name, flat] : step.optimizer().slots())
    check_bits(flat, sum);
}

TEST_CASE("a checkpoint of weights that changed meanwhile is refused") {
  const PlacementRow placement = hosts(3)[2];
  CHECK_NOTHROW(check_unchanged(7, 7, placement, 30));
  CHECK_THROWS_MATCHES(
      check_unchanged(7, 8, placement, 30), DeviceError,
      Catch::Matchers::Message(
          "[train] after step 30 the weights of rank 2 on node1 changed "
          "while the checkpoint was written, so it is thrown away. "
          "Memory, a processor or a GPU has changed a bit. Hint: a restart "
          "or --resume goes back to the checkpoint before; leave out a "
          "host that is named again"));
}

TEST_CASE("a rank with another sum is named on all ranks, with its host") {
  ThreadWorld world(4);
  std::atomic<int> alike = 0;
  world.run([&](Communicator& comm) {
    check_ranks_agree(comm, 5, hosts(4), 99);
    const std::string text = error_of<DeviceError>([&] {
      check_ranks_agree(comm, comm.rank() == 3 ? 6 : 5, hosts(4), 100);
    });
    alike += text.find(
                 "after step 100 the ranks hold different weights: rank "
                 "3 on node1 differs from all others") != std::string::npos;
  });
  CHECK(alike == 4);
}

TEST_CASE("of two ranks that differ both are named") {
  ThreadWorld world(2);
  std::atomic<int> alike = 0;
  world.run([&](Communicator& comm) {
    const auto own = static_cast<uint64_t>(comm.rank());
    const std::string text = error_of<DeviceError>(
        [&] { check_ranks_agree(comm, own, hosts(2), 7); });
    alike += text.find(
                 "rank 0 on node0, rank 1 on node0, and which is right "
                 "cannot be told") != std::string::npos;
  });
  CHECK(alike == 2);
}
