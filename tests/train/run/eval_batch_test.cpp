#include "chexnet/train/run/eval_batch.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a batch that no memory holds is refused, with one that fits") {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  CHECK(no_room_for({.batch = 32, .side = 224, .free_bytes = kGiB}).empty());
  CHECK(no_room_for({.batch = 100'000, .side = 224}).empty());  // not known
  const std::string text =
      no_room_for({.batch = 100'000, .side = 224, .free_bytes = 4 * kGiB});
  CHECK(text ==
        "eval.batch=100000: a forward pass of so many images of 224 x 224 "
        "needs more than 149.5 GiB, and 4.0 GiB are free here. Hint: "
        "eval.batch=32");
  EvalPass pass{.batch = 2000, .side = 224, .free_bytes = 4 * kGiB};
  CHECK(no_room_for(pass).empty());
  pass.networks = 24;
  CHECK(no_room_for(pass) ==
        "eval.batch=2000: a forward pass of so many images of 224 x 224 "
        "through 24 networks needs more than 71.8 GiB, and 4.0 GiB are free "
        "here. Hint: eval.batch=32");
}

TEST_CASE("a batch that is mostly padding is said, with one that is not") {
  CHECK(padding_of({.batch = 32, .images_per_rank = 3}).empty());
  CHECK(padding_of({.batch = 64, .images_per_rank = 33}).empty());
  CHECK(padding_of({.batch = 46, .images_per_rank = 230}).empty());
  CHECK(padding_of({.batch = 512, .images_per_rank = 5}) ==
        "eval.batch=512: a forward pass computes so many images, and a rank "
        "has 5; the others are padding, which takes as long. Hint: "
        "eval.batch=5");
  CHECK(padding_of({.batch = 64, .images_per_rank = 0}).ends_with("batch=1"));
}

TEST_CASE("a batch beyond the host's memory is refused before the work") {
  Config config;
  config.eval.batch = 1'000'000'000;
  Split split;
  split.rows = {0, 1, 2};
  const auto comm = solo_communicator();
  CHECK_THROWS_AS(check_eval_batch(config, split, 1, *comm, true), ConfigError);
  check_eval_batch(config, split, 1, *comm,
                   false);  // a GPU's memory is not shared
  split.rows.clear();
  check_eval_batch(config, split, 1, *comm, true);  // nothing is scored
}
