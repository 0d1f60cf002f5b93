#include "chexnet/train/auto_batch.hpp"

#include <vector>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/limited_memory.hpp"

using namespace chexnet;

namespace {

// A step that takes `fixed` bytes, and `each` for an image; with a memory of
// `all` bytes. Counts how often it is tried.
struct SyntheticStep {
  double fixed, each, all;
  double jump = 0;  // more, from `from` images on: another algorithm
  int64_t from = 0;
  std::vector<int64_t> tried{};
  std::optional<double> operator()(int64_t images) {
    tried.push_back(images);
    const double bytes = fixed + each * static_cast<double>(images) +
                         (images >= from ? jump : 0);
    return bytes > all ? std::nullopt : std::optional(bytes);
  }
};

int64_t largest(SyntheticStep& step, double budget, int64_t most = 10'000) {
  return largest_step([&](int64_t images) { return step(images); }, budget,
                      most);
}

}  // namespace

TEST_CASE("the largest step is found by two small ones and a line") {
  SyntheticStep step{100, 10, 1e9};
  CHECK(largest(step, 1100) == 100);
  CHECK(step.tried == std::vector<int64_t>{4, 8, 100});
  CHECK(largest(step, 1100, 50) == 50);
  CHECK(largest(step, 1100, 3) == 3);
  CHECK(largest(step, 170) == 7);
  CHECK(largest(step, 120) == 2);
  CHECK(largest(step, 105) == 0);
}

TEST_CASE("where a library takes more than the line says, steps decide") {
  SyntheticStep jumps{100, 10, 1000, 200, 60};
  const int64_t found = largest(jumps, 1000);
  CHECK(found > 60);
  CHECK(found <= 70);
  SyntheticStep full{100, 10, 139};  // four images do not fit
  CHECK(largest(full, 1000) == 3);
  SyntheticStep barely{100, 10, 145};  // eight do not
  CHECK(largest(barely, 1000) == 4);
}

TEST_CASE("on a GPU the automatic batch is measured, within what is free") {
  constexpr size_t kBytes = size_t{300} << 20;
  LimitedMemory gpu(kBytes);
  const auto solo = solo_communicator();
  Network network(network_spec("densenet121"), 14, {.own_engine = false});
  network.parameters().initialize(1);
  Config config;
  config.data.crop = 64;
  const BatchLimits limits{.images = 1'000'000, .cuda = &gpu};
  const int64_t batch = auto_batch(config, network, *solo, limits);
  CHECK(batch > 4);
  CHECK(gpu.most_allocated() <= kBytes);
  CHECK(gpu.refused() == 0);  // nine tenths: nothing was tried beyond
  gpu.restart_peak();
  network.backward(at::zeros_like(network.forward(
      at::zeros({batch, 1, 64, 64}, at::kByte), Mode::kTraining)));
  CHECK(gpu.peak_bytes() > kBytes / 2);
  config.train.accumulate = 2;
  CHECK(auto_batch(config, network, *solo, limits) == 2 * batch);
}

TEST_CASE("a step that runs out of memory leaves nothing of itself behind") {
  LimitedMemory gpu(size_t{200} << 20);
  Network network(network_spec("densenet121"), 14, {.own_engine = false});
  network.parameters().initialize(1);
  const auto step = [&](int64_t images) {
    network.backward(at::zeros_like(network.forward(
        at::zeros({images, 1, 64, 64}, at::kByte), Mode::kTraining)));
  };
  step(1);
  const size_t free = gpu.free_bytes();
  CHECK_THROWS_AS(step(100), c10::OutOfMemoryError);
  CHECK(gpu.refused() == 1);
  CHECK(gpu.free_bytes() >= free);
  step(2);  // and the next one finds its room
}

TEST_CASE("a GPU without room for an image says so") {
  const auto solo = solo_communicator();
  Network network(network_spec("densenet121"), 14, {.own_engine = false});
  network.parameters().initialize(1);
  LimitedMemory gpu(size_t{4} << 20);
  Config config;
  config.data.crop = 64;
  CHECK(error_of<ConfigError>([&] {
          auto_batch(config, network, *solo, {.images = 100, .cuda = &gpu});
        }).find("not even one image per rank fits") != std::string::npos);
}

TEST_CASE("the automatic batch is the largest whose memory plan fits") {
  const auto solo = solo_communicator();
  Network network(network_spec("densenet121"), 14, {});
  Config config;
  config.data.crop = 64;
  const uint64_t memory = uint64_t{1} << 30;
  const int64_t batch = auto_batch(config, network, *solo, {1'000'000, memory});
  CHECK(batch > 16);
  CHECK(*network.planned_bytes(batch, 64) < memory);
  CHECK(*network.planned_bytes(batch + batch / 4, 64) > memory / 2);
  CHECK(auto_batch(config, network, *solo, {1'000'000, 2 * memory}) > batch);
  CHECK(auto_batch(config, network, *solo, {10, memory}) == 10);
  config.train.accumulate = 4;
  CHECK(auto_batch(config, network, *solo, {1'000'000, memory}) % 4 == 0);
  CHECK(error_of<ConfigError>([&] {
          auto_batch(config, network, *solo, {100, 1'000'000});
        }).find("not even one image") != std::string::npos);
}
