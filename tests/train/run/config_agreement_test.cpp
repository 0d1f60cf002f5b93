#include "chexnet/train/run/config_agreement.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

// Of three ranks, the last of which has another config; "" where that is fine.
std::string refusal(const Config& of_rank_2) {
  return error_of<ConfigError>([&] {
    ThreadWorld(3).run([&](Communicator& comm) {
      check_same_config(comm, comm.rank() == 2 ? of_rank_2 : Config());
    });
  });
}

}  // namespace

TEST_CASE("ranks with different configs are told which, and the keys") {
  CHECK(refusal({}).empty());
  Config other;
  other.data.flip = false;
  other.train.lr = 0.5;
  const std::string text = refusal(other);
  CHECK(text.starts_with("[config] rank 2 on "));
  CHECK(text.find("data.flip: false, and not true; train.lr: 0.5, and not ") !=
        std::string::npos);
  Config elsewhere;
  elsewhere.run.dir = "runs/other";
  CHECK(refusal(elsewhere).find("run.dir: ") != std::string::npos);
}

TEST_CASE("what a host has for itself may differ among ranks") {
  Config other;
  other.data.images = {"/scratch/of/this/host"};
  other.data.workers = 3;
  other.launch.threads = 5;
  CHECK(refusal(other).empty());
}
