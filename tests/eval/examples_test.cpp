#include "chexnet/eval/examples.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {

DecisionRules rules_of(double mass, std::optional<double> edema) {
  DecisionRules rules;
  rules.findings.resize(2);
  rules.findings[0].finding = "Mass";
  rules.findings[0].points = {{"youden", mass}};
  rules.findings[1].finding = "Edema";
  rules.findings[1].points = {{"youden", edema}};
  return rules;
}

// Mass: one positive; Edema: four.
Predictions six_images() {
  Predictions p;
  p.findings = {"Mass", "Edema"};
  p.images = {"a", "b", "c", "d", "e", "f"};
  p.labels = {1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0};
  p.probabilities = {0.9, 0.7, 0.2, 0.3, 0.8, 0.9,
                     0.1, 0.1, 0.1, 0.6, 0.1, 0.6};
  return p;
}

std::string text_of(const std::vector<ScoredExample>& examples) {
  std::string text;
  for (const auto& e : examples)
    text += std::to_string(e.image) + " " + std::to_string(e.finding) + " " +
            e.kind + "; ";
  return text;
}

}  // namespace

TEST_CASE("examples are the clearest hits, misses and false alarms") {
  const Predictions p = six_images();
  CHECK(text_of(choose_examples(p, rules_of(0.5, 0.5), 12)) ==
        "2 1 right; 3 1 missed; 4 1 false alarm; "
        "0 0 right; 2 0 false alarm; ");
  CHECK(choose_examples(p, rules_of(0.5, 0.5), 2).size() == 2);
  CHECK(text_of(choose_examples(p, rules_of(0.95, {}), 12)) == "0 0 missed; ");
  CHECK(choose_examples(p, {}, 12).empty());
}

TEST_CASE("an image without a score is no example") {
  Predictions p = six_images();
  p.reasons.assign(6, "");
  p.reasons[2] = "damaged";
  CHECK(text_of(choose_examples(p, rules_of(0.5, 0.5), 12)) ==
        "0 1 right; 3 1 missed; 4 1 false alarm; 0 0 right; ");
}
