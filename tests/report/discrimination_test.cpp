#include "report/discrimination.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

Json figures_of(const Json& auroc, const Json& range) {
  return {{"auroc", auroc}, {"auroc_interval", range}, {"positives", 30}};
}

// The first words of the sentence that names the one finding.
std::string verdict_of(const Json& figures) {
  const Json evaluation = {{"findings", {{"Mass", figures}}}};
  const auto sentences = sentences_of(discrimination_of(evaluation));
  REQUIRE(sentences.size() == 1);
  REQUIRE(sentences[0].ends_with(": Mass."));
  return sentences[0].substr(0, sentences[0].find_first_of(",(:"));
}

}  // namespace

TEST_CASE("the lower end of the interval says how well a finding is told") {
  const auto verdict = [](double low, double high) {
    return verdict_of(figures_of((low + high) / 2, {low, high}));
  };
  CHECK(verdict(0.8, 0.9) == "Well ");
  CHECK(verdict(0.7999, 0.99) == "Fairly ");
  CHECK(verdict(0.7, 0.75) == "Fairly ");
  CHECK(verdict(0.6999, 0.9) == "Weakly ");
  CHECK(verdict(0.5001, 0.6) == "Weakly ");
  CHECK(verdict(0.5, 0.9) == "Not shown to be better than a coin");
  CHECK(verdict(0.1, 0.5) == "Not shown to be better than a coin");
  CHECK(verdict(0.1, 0.4999) == "Below a coin on these images ");
  CHECK(verdict(0.0, 0.01) == "Below a coin on these images ");
}

TEST_CASE(
    "an interval is of its finding alone, and few positives do not lead") {
  const auto figures = [](int positives, const Json& range) {
    return Json{{"auroc", range.is_null() ? 1.0 : 0.9},
                {"auroc_interval", range},
                {"positives", positives}};
  };
  const auto sentences = sentences_of(
      discrimination_of({{"findings",
                          {{"Edema", figures(29, {0.85, 0.95})},
                           {"Hernia", figures(10, nullptr)},
                           {"Mass", figures(30, {0.75, 0.95})},
                           {"Nodule", figures(10, {0.45, 0.9})}}}}));
  CHECK(sentences ==
        std::vector<std::string>{
            "Fairly (95 % interval above 0.7 on these images, each finding "
            "taken alone): Mass.",
            "Not shown to be better than a coin: Nodule.",
            "Above a coin with 10 to 29 positives, each finding taken alone, "
            "which says little: of twenty findings without any skill one "
            "comes out so: Edema, Hernia."});
  for (const auto& sentence : sentences)
    CHECK(sentence.find("urely") == std::string::npos);
}

TEST_CASE("without an interval the verdict says why there is none") {
  const Json none = nullptr;
  CHECK(verdict_of(figures_of(1.0, none)) ==
        "Without an error in these images ");
  CHECK(verdict_of(figures_of(0.0, none)) == "Below a coin on these images ");
  CHECK(verdict_of(figures_of(0.5, none)) ==
        "Not shown to be better than a coin");
  CHECK(verdict_of(figures_of(none, none)) == "Too few to judge");
  for (const char* few : {"few_positives", "few_patients"}) {
    Json figures = figures_of(1.0, none);
    figures[few] = true;
    CHECK(verdict_of(figures) == "Too few to judge");
  }
  Json rough = figures_of(0.9, {0.85, 0.95});
  rough["few_positives"] = true;
  CHECK(verdict_of(rough) == "Too few to judge");
}

TEST_CASE("what is not proven is no use, and what had no error is") {
  const auto limits = [](const Json& figures) {
    return limits_of_use(
        {{"evaluations", {{"test", {{"findings", {{"Mass", figures}}}}}}}},
        "test");
  };
  const std::string unproven =
      "Mass: these images do not show that it works for them.";
  const auto names_it = [&](const Json& figures) {
    for (const auto& limit : limits(figures))
      if (limit == unproven) return true;
    return false;
  };
  CHECK_FALSE(names_it(figures_of(1.0, nullptr)));
  CHECK_FALSE(names_it(figures_of(0.6, {0.55, 0.7})));
  CHECK(names_it(figures_of(0.0, nullptr)));
  CHECK(names_it(figures_of(0.3, {0.2, 0.4})));
  CHECK(names_it(figures_of(0.6, {0.45, 0.7})));
  CHECK(names_it(figures_of(0.9, nullptr)));
}
