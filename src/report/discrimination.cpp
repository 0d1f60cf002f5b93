#include "discrimination.hpp"

#include "chexnet/data/findings.hpp"
#include "chexnet/eval/ensemble.hpp"
#include "chexnet/report/run_results.hpp"

namespace chexnet {

// By the whole interval, not by its middle: "well" is what the data show even
// if this sample was a lucky one.
Discrimination discrimination_of(const Json& evaluation) {
  constexpr double kWell = 0.8, kFairly = 0.7, kChance = 0.5;
  constexpr double kManyPositives = 30;
  Discrimination found;
  for (const auto& [name, figures] : member(evaluation, "findings").items()) {
    const auto value = number(figures, "auroc");
    auto range = interval(figures, "auroc_interval");
    // All of the one kind before all of the other: no resample differs.
    const bool flawless = !range && value == 1.0;
    // The same of 0, and of 0.5 where all have one score.
    for (const double same : {0.0, 0.5})
      if (!range && value == same) range = Interval{same, same};
    const bool few =
        is_true(figures, "few_positives") || is_true(figures, "few_patients");
    const bool small =
        number(figures, "positives").value_or(0) < kManyPositives;
    if (few || (!range && !flawless))
      found.too_few.push_back(shown(name));
    else if (small && (flawless || range->low > kChance))
      found.small.push_back(shown(name));
    else if (flawless)
      found.flawless.push_back(shown(name));
    else if (range->low >= kWell)
      found.well.push_back(shown(name));
    else if (range->low >= kFairly)
      found.fairly.push_back(shown(name));
    else if (range->low > kChance)
      found.weakly.push_back(shown(name));
    else if (range->high < kChance)
      found.worse.push_back(shown(name));
    else
      found.not_shown.push_back(shown(name));
  }
  return found;
}

std::vector<std::string> sentences_of(const Discrimination& found) {
  std::vector<std::string> sentences;
  const auto add = [&](const char* what,
                       const std::vector<std::string>& names) {
    if (!names.empty())
      sentences.push_back(std::string(what) + ": " + listed(names) + ".");
  };
  add("Without an error in these images (AUROC 1, which has no interval)",
      found.flawless);
  add("Well (95 % interval above 0.8 on these images, each finding taken "
      "alone)",
      found.well);
  add("Fairly (95 % interval above 0.7 on these images, each finding taken "
      "alone)",
      found.fairly);
  add("Weakly (95 % interval above 0.5 on these images, each finding taken "
      "alone)",
      found.weakly);
  add("Not shown to be better than a coin", found.not_shown);
  add("Above a coin with 10 to 29 positives, each finding taken alone, which "
      "says little: of twenty findings without any skill one comes out so",
      found.small);
  add("Below a coin on these images (AUROC below 0.5, each finding taken "
      "alone): luck, as one of forty findings without any skill comes out so, "
      "or something is wrong with the labels or the network",
      found.worse);
  add("Too few to judge, under ten images with it, or under five patients "
      "with it or without",
      found.too_few);
  return sentences;
}

// The first two hold for every network; the others follow from the figures.
std::vector<std::string> limits_of_use(const Json& results,
                                       const std::string& split) {
  const Json& evaluation = member(member(results, "evaluations"), split);
  std::vector<std::string> limits = {
      "Decisions about a patient, such as diagnosis or triage: it is for "
      "research and is not a medical device.",
      "X-rays unlike those it was tested on (other sites, devices, views, "
      "ages): nothing here tells how it does there."};
  if (const std::string shared = shared_pictures_text(results); !shared.empty())
    limits.push_back("Expecting these figures elsewhere: " + shared +
                     " (`inspect` lists them).");
  if (is_out_of_fold(results))
    limits.push_back(
        "Yes or no as it stands: " + std::string(kChosenOutOfFold) + ".");
  if (split == "val")
    limits.emplace_back(
        "Expecting these figures elsewhere: they are too good, as checkpoint "
        "and thresholds were chosen on the same images.");
  const Discrimination found = discrimination_of(evaluation);
  std::vector<std::string> unproven = found.too_few;
  for (const auto* more : {&found.not_shown, &found.worse})
    unproven.insert(unproven.end(), more->begin(), more->end());
  if (!unproven.empty())
    limits.push_back(listed(unproven) +
                     ": these images do not show that it works for them.");
  if (is_true(member(results, "model"), "weighted_loss"))
    limits.emplace_back(
        "Reading its scores as probabilities: it was trained with a weighted, "
        "focal or asymmetric loss or with balanced draws, which shift them "
        "away from prevalence.");
  limits.emplace_back(
      "Measuring against the truth: labels that text mining drew from reports, "
      "as those of the public sets, are wrong in some images, and so are the "
      "figures here.");
  return limits;
}

}  // namespace chexnet
