#include "chexnet/launch/restart_policy.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a run starts again while that may help") {
  for (const int code : {0, 2, 3, 4, 6, 75})
    CHECK_FALSE(RestartPolicy::may_pass(code));
  for (const int code : {5, 7, 137, 205, 139})
    CHECK(RestartPolicy::may_pass(code));
  CHECK(RestartPolicy::may_pass(9));
  CHECK(RestartPolicy::is_explained(9));
  CHECK_FALSE(RestartPolicy::is_explained(137));
  CHECK(RestartPolicy::pause_s(9) > 0);
  CHECK(RestartPolicy::pause_s(5) == 0);
  RestartPolicy policy(5);
  CHECK_FALSE(policy.again(3, "step-1"));
  CHECK(policy.again(7, ""));
  CHECK(policy.again(7, "step-1"));
  CHECK(policy.again(137, "step-1"));
  CHECK_FALSE(policy.again(7, "step-1"));  // two restarts got no further
  CHECK(policy.left() == 2);
  CHECK(policy.again(7, "step-2"));
  CHECK(policy.again(7, "step-3"));
  CHECK_FALSE(policy.again(7, "step-4"));  // none left
}
