#include "chexnet/run/loss_scale.hpp"

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE(
    "the fp16 loss scale halves on overflow and doubles after 2,000 good "
    "steps") {
  LossScale s = LossScale::for_fp16();
  s.overflowed();
  CHECK(s.value == 32768);
  for (int i = 0; i < 2000; ++i) s.succeeded();
  CHECK(s.value == 65536);
  LossScale fixed_scale;
  for (int i = 0; i < 3000; ++i) fixed_scale.succeeded();
  CHECK(fixed_scale.value == 1);
}
