#include "chexnet/eval/ranked_cases.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

TEST_CASE("cases rank from the highest score, negatives before ties") {
  const std::vector<double> scores = {0.1, 0.9, 0.5, 0.5, 0.5, 0.7, 0.2};
  const std::vector<float> labels = {0, 0, 1, 0, 1, NAN, 1};
  const auto ranked = rank_cases(scores, labels);
  REQUIRE(ranked);
  CHECK(ranked->cases == std::vector<uint32_t>{1, 3, 2, 4, 6, 0});
  CHECK((ranked->positives == 3 && ranked->negatives == 3));
  REQUIRE(ranked->steps.size() == 2);
  CHECK((ranked->steps[0].above_end == 1 && ranked->steps[0].tied_end == 2 &&
         ranked->steps[0].positives_end == 4));
  CHECK((ranked->steps[1].above_end == 4 && ranked->steps[1].tied_end == 4 &&
         ranked->steps[1].positives_end == 5));
  CHECK_FALSE(rank_cases(std::vector<double>{NAN}, std::vector<float>{1}));
}

TEST_CASE("average precision is scikit-learn's") {
  const SyntheticCases cases;
  const auto of = [&](const std::vector<double>& scores) {
    return average_precision(*rank_cases(scores, cases.labels));
  };
  CHECK(*of(cases.a) == Approx(0.7141005539629262).epsilon(1e-12));
  CHECK(*of(cases.b) == Approx(0.6126202867838335).epsilon(1e-12));
  const std::vector<double> equal(400, 0.5);
  CHECK(*of(equal) == Approx(0.3075).epsilon(1e-12));
  const std::vector<double> two = {1, 2};
  CHECK_FALSE(average_precision(*rank_cases(two, std::vector<float>{1, 1})));
  CHECK_FALSE(average_precision(*rank_cases(two, std::vector<float>{0, 0})));
}
