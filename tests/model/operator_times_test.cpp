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

TEST_CASE("calls on maps of 100 MB have a row of their own") {
  const at::Tensor small = at::ones({1000}), large = at::ones({25'000'000});
  const OperatorTimes times([] {});
  at::neg(small);
  at::neg(large);
  const auto rows = times.rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "aten::neg, 100 MB");
  CHECK(rows[0].bytes == 2 * 100'000'000);
  CHECK(rows[1].name == "aten::neg");
}
