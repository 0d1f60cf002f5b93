#include "chexnet/eval/ensemble.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

Predictions table(std::vector<std::string> images,
                  std::vector<double> probabilities) {
  Predictions p;
  p.findings = {"Mass"};
  p.labels.assign(images.size(), 1);
  p.reasons.assign(images.size(), "");
  p.images = std::move(images);
  p.probabilities = std::move(probabilities);
  return p;
}

}  // namespace

TEST_CASE("members' logits and probabilities give a mean and a spread") {
  // 1/(1 + e^-1) and its mirror image.
  const MemberMean mean = mean_of_members(std::array{1.0, -1.0});
  CHECK(mean.logit == 0);
  const double p = 1 / (1 + std::exp(-1.0));
  CHECK(mean.spread == Approx((2 * p - 1) / std::sqrt(2.0)));
  const MemberMean alone = mean_of_members(std::array{0.3});
  CHECK(alone.logit == 0.3);
  CHECK(alone.spread == 0);
}

TEST_CASE("an image of a table counts with the members that scored it") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Predictions second = table({"b", "c", "d"}, {0.8, 0.6, nan});
  second.reasons[2] = "is damaged";
  Predictions first = table({"a", "b", "d"}, {0.5, 0.2, nan});
  first.reasons[2] = "is no PNG";
  const Predictions all = mean_of_tables({first, second});
  CHECK(all.images == Strings{"a", "b", "d", "c"});
  CHECK(all.probabilities[0] == Approx(0.5));
  CHECK(all.probabilities[1] == Approx(0.5));  // of logits of one size
  CHECK(std::isnan(all.probabilities[2]));
  CHECK(all.probabilities[3] == Approx(0.6));
  CHECK(all.reasons == Strings{"", "", "is no PNG", ""});
  CHECK(std::isnan(all.spreads[0]));
  CHECK(all.spreads[1] == Approx(0.6 / std::sqrt(2.0)));
  CHECK(predictions_csv(all).starts_with(
      "image,label:Mass,prob:Mass,spread:Mass,reason\n"));

  const Predictions folds =
      mean_of_tables({table({"a"}, {0.1}), table({"b"}, {0.9})});
  CHECK(folds.spreads.empty());
  CHECK(folds.probabilities[0] == Approx(0.1));
}

TEST_CASE("a table that rounded to 0 or 1 still has a logit") {
  const Predictions all =
      mean_of_tables({table({"a", "b"}, {1, 0}), table({"a", "b"}, {1, 0})});
  CHECK(all.probabilities[0] == Approx(1));
  CHECK(all.probabilities[1] < 1e-300);
}

TEST_CASE("tables that label an image differently are no ensemble") {
  Predictions other = table({"a"}, {0.5});
  other.labels[0] = 0;
  CHECK(error_of<DataError>([&] {
          mean_of_tables({table({"a"}, {0.5}), other});
        }).find("Mass of a is labeled differently") != std::string::npos);
}

TEST_CASE("a table with spreads reads back as one without") {
  const ScratchFolder folder;
  const Predictions all =
      mean_of_tables({table({"a"}, {0.2}), table({"a"}, {0.4})});
  folder.write("p.csv", predictions_csv(all));
  const Predictions read = read_predictions(folder / "p.csv", nullptr);
  CHECK(read.findings == all.findings);
  CHECK(read.probabilities == all.probabilities);
}
