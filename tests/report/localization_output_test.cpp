#include "report/localization_output.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

FindingLocalization finding_of(const std::string& name, size_t cases) {
  FindingLocalization f;
  f.finding = name;
  f.cases = cases;
  f.pointing = {0.5, PercentileInterval{{0.4, 0.6}, 0}};
  return f;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a mean over boxed findings says how many, and how many are rough") {
  Localization found;
  found.findings = {finding_of("Mass", 40), finding_of("Nodule", 10)};
  found.mean_pointing = {0.5, PercentileInterval{{0.4, 0.6}, 0}};
  found.cases = 50;
  const std::string sure = localization_text(found);
  CHECK(says(sure, "\n  mean of 2 findings  "));
  CHECK_FALSE(says(sure, "*"));
  CHECK_FALSE(says(sure, "no interval"));

  found.findings.push_back(finding_of("Hernia", 1));
  found.findings.back().pointing = {1.0, {}};
  found.mean_pointing.interval.reset();
  const std::string rough = localization_text(found);
  CHECK(says(rough, "\n  Hernia *  "));
  CHECK(says(rough, "\n  mean of 3 findings, 1 *  "));
  CHECK(says(rough, "* rough: fewer than ten images, or a mean that counts"));
  CHECK(says(rough, "no interval (-): fewer than five patients"));
  const Json mean = localization_json(found)["mean_pointing"];
  CHECK(mean["findings"] == 3);
  CHECK(mean["few_cases"] == 1);
  CHECK(mean["interval"].is_null());
}

TEST_CASE("few images that are called positive are marked beside all") {
  Localization found;
  found.findings = {finding_of("Mass", 40)};
  found.findings[0].called = 3;
  found.knows_called = true;
  found.mean_pointing = found.findings[0].pointing;
  const std::string text = localization_text(found);
  CHECK(says(text, " 3 *"));
  CHECK(says(text, "\n  mean of 1 finding  "));
  CHECK(says(text, "* rough"));
  const Json mean = localization_json(found)["mean_pointing_of_called"];
  CHECK(mean["findings"] == 1);
  CHECK(mean["few_cases"] == 1);
}
