#include "chexnet/eval/subgroup_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/eval/figures.hpp"
#include "chexnet/eval/figures_csv.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "synthetic_cases.hpp"

using namespace chexnet;

namespace {

using Strings = std::vector<std::string>;

Manifest synthetic_manifest() {
  Manifest m;
  m.findings = {"Mass, left", "B"};
  for (uint32_t i = 0; i < 400; ++i) {
    m.images.push_back(std::to_string(i));
    m.rows.emplace(m.images.back(), i);
    m.ages.push_back(i % 7 == 0 ? NAN : static_cast<float>(i % 90));
    m.sexes.emplace_back(i % 3 == 0 ? "F" : "M");
  }
  m.views.resize(400);
  return m;
}

Predictions ordered_cases(bool backwards) {
  const SyntheticCases cases;
  std::vector<size_t> order(400);
  std::iota(order.begin(), order.end(), size_t{0});
  if (backwards) std::ranges::reverse(order);
  Predictions p;
  p.findings = {"Mass, left", "B"};
  for (const auto i : order) {
    p.images.push_back(std::to_string(i));
    p.labels.insert(p.labels.end(), 2, cases.labels[i]);
    p.probabilities.insert(p.probabilities.end(), {cases.a[i], cases.b[i]});
  }
  return p;
}

const BootstrapOptions kHundred{.resamples = 100};

std::string all_figures(const Predictions& p) {
  const Manifest m = synthetic_manifest();
  const std::vector<SubgroupTable> tables = {
      subgroup_table(p, {}, m, "sex", group_values(m, "sex", {}), kHundred)};
  const auto rules = choose_rules(p, {}, {});
  const auto points = operating_points(p, {}, &rules, {});
  const auto reliability = reliability_of(p, {}, &rules);
  const Comparison comparison = compare(p, p, {}, kHundred);
  return figures_csv({.figures = figures_of(p, {}, kHundred),
                      .points = points,
                      .prevalence = 0.1,
                      .reliability = reliability,
                      .subgroups = tables,
                      .comparison = &comparison});
}

}  // namespace

TEST_CASE("no figure depends on the order of a table's rows") {
  CHECK(all_figures(ordered_cases(false)) == all_figures(ordered_cases(true)));
}

TEST_CASE("a table of all figures is a CSV whatever a finding is called") {
  const std::string text = all_figures(ordered_cases(false));
  CHECK(text.find("\n\"Mass, left\",auroc,,,0.") != std::string::npos);
  CHECK(text.find("\n\"Mass, left\",auroc_gap,,,") != std::string::npos);
  CHECK(text.find(",sex=F,0\n") != std::string::npos);
  CHECK(text.find("\nB,brier,isotonic,,0.") != std::string::npos);
  CHECK(text.find("\nB,rate,none,,") != std::string::npos);
  CHECK(text.find(",equal_widths 2: 0.1-0.2,") != std::string::npos);
  CHECK(text.find("\nB,auroc_difference,,,0,,,") != std::string::npos);
}

TEST_CASE("groups are by sex, by age and by what the table has") {
  const Manifest m = synthetic_manifest();
  CHECK(group_values(m, "Sex", {}) == m.sexes);
  const Strings ages = group_values(m, "age", {18, 65});
  CHECK((ages[0].empty() && ages[1] == "0-17" && ages[64] == "18-64"));
  CHECK(
      error_of<DataError>([&] {
        group_values(m, "view", {});
      }).find("Hint: --set data.manifest.columns.view=NAME names its column") !=
      std::string::npos);

  const auto table =
      subgroup_table(ordered_cases(true), {"B"}, m, "age", ages, kHundred);
  CHECK(table.findings == Strings{"B"});
  REQUIRE(table.of.size() == 1);
  REQUIRE(table.of[0].groups.size() == 3);
  CHECK(table.of[0].unknown == 58);
  size_t images = table.of[0].unknown;
  for (const auto& group : table.of[0].groups) images += group.images;
  CHECK(images == 400);
}
