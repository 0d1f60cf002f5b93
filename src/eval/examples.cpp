#include "chexnet/eval/examples.hpp"

#include <algorithm>
#include <optional>

#include "chexnet/eval/scored_columns.hpp"

namespace chexnet {
namespace {

using Column = ScoredColumns::Column;

// The case that `better(a, b)` puts first, among those that fit.
template <class Fits, class Better>
std::optional<size_t> first_case(const Column& column, const Fits& fits,
                                 const Better& better) {
  std::optional<size_t> found;
  for (size_t i = 0; i < column.scores.size(); ++i)
    if (fits(i) && (!found || better(column.scores[i], column.scores[*found])))
      found = i;
  return found;
}

std::vector<ScoredExample> examples_of(const Column& column,
                                       const std::vector<size_t>& rows,
                                       double threshold) {
  const auto called = [&](size_t i) { return column.scores[i] >= threshold; };
  const auto is = [&](size_t i, float label) {
    return column.labels[i] == label;
  };
  std::vector<ScoredExample> examples;
  const auto add = [&](const char* kind, std::optional<size_t> found) {
    if (found)
      examples.push_back(
          {rows[*found], column.index, kind, column.scores[*found], threshold});
  };
  add("right", first_case(
                   column, [&](size_t i) { return is(i, 1) && called(i); },
                   std::greater<>()));
  add("missed", first_case(
                    column, [&](size_t i) { return is(i, 1) && !called(i); },
                    std::less<>()));
  add("false alarm",
      first_case(
          column, [&](size_t i) { return is(i, 0) && called(i); },
          std::greater<>()));
  return examples;
}

}  // namespace

std::vector<ScoredExample> choose_examples(const Predictions& predictions,
                                           const DecisionRules& rules,
                                           size_t most) {
  ScoredColumns scored = scored_columns(predictions, {});
  std::ranges::stable_sort(scored.columns, std::ranges::greater(),
                           &Column::positives);
  std::vector<ScoredExample> examples;
  for (const Column& column : scored.columns) {
    const FindingRules* own = rules.find(column.finding);
    const auto threshold =
        own != nullptr ? own->threshold("youden") : std::nullopt;
    if (!threshold || column.positives == 0) continue;
    for (auto& example : examples_of(column, scored.rows, *threshold)) {
      if (examples.size() == most) return examples;
      examples.push_back(std::move(example));
    }
  }
  return examples;
}

}  // namespace chexnet
