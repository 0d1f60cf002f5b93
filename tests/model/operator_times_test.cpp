#include "chexnet/model/operator_times.hpp"

#include <ATen/ATen.h>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("an operator's bytes are those of what it reads and writes") {
  const at::Tensor a = at::ones({1000}), b = at::ones({1000});
  const OperatorTimes times([] {});
  at::add(a, b);
  at::add(a, b);
  const auto rows = times.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "aten::add");
  CHECK(rows[0].calls == 2);
  CHECK(rows[0].bytes == 2 * 3 * 1000 * 4);
}
