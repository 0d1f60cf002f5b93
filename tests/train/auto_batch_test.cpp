#include "chexnet/train/auto_batch.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("the automatic batch is the largest whose memory plan fits") {
  const auto solo = solo_communicator();
  Network network(network_spec("densenet121"), 14, {});
  Config config;
  config.data.crop = 64;
  const std::uint64_t memory = std::uint64_t{1} << 30;
  const std::int64_t batch =
      auto_batch(config, network, *solo, {1'000'000, memory});
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
