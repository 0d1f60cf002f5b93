// An AUROC is a mean over positives, and over negatives, of their structural
// components:
//   of a positive: the fraction of negatives below it (ties half)
//                = (midrank among all - midrank among positives) / negatives
//   of a negative: the fraction of positives above it (ties half)
//                = 1 - (midrank among all - midrank among negatives) /
//                positives
// Their covariances over models give that of the AUROCs. Of a difference of two
// AUROCs the components are the differences.
#include "chexnet/eval/delong.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <vector>

namespace chexnet {
namespace {

// The rank from 1 up, the mean rank where several are equal.
std::vector<double> midranks(const std::vector<double>& values) {
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]])
      ++end;
    for (size_t i = first; i < end; ++i)
      ranks[order[i]] = static_cast<double>(first + end + 1) / 2;
    first = end;
  }
  return ranks;
}

// The labeled cases, positives first.
struct Cases {
  std::vector<uint32_t> index;  // into the scores
  size_t positives = 0;
  size_t negatives() const { return index.size() - positives; }
};

Cases labeled_cases(std::span<const float> labels) {
  Cases cases;
  const auto add = [&](bool positive) {
    for (size_t i = 0; i < labels.size(); ++i)
      if (!std::isnan(labels[i]) && (labels[i] > 0.5f) == positive)
        cases.index.push_back(static_cast<uint32_t>(i));
  };
  add(true);
  cases.positives = cases.index.size();
  add(false);
  return cases;
}

struct Components {
  std::vector<double> of;  // [cases], positives first
  double auroc = 0;
};

std::optional<Components> components(std::span<const double> scores,
                                     const Cases& cases) {
  std::vector<double> all;
  for (const auto i : cases.index) {
    if (std::isnan(scores[i])) return std::nullopt;
    all.push_back(scores[i]);
  }
  const auto split = all.begin() + static_cast<ptrdiff_t>(cases.positives);
  const auto among_all = midranks(all);
  const auto among_positives = midranks({all.begin(), split});
  const auto among_negatives = midranks({split, all.end()});
  const auto m = static_cast<double>(cases.positives);
  const auto n = static_cast<double>(cases.negatives());
  Components result;
  double won = 0;  // exact: a sum of halves
  for (size_t i = 0; i < cases.positives; ++i) {
    const double wins = among_all[i] - among_positives[i];
    won += wins;
    result.of.push_back(wins / n);
  }
  for (size_t i = cases.positives; i < all.size(); ++i)
    result.of.push_back(
        1 - (among_all[i] - among_negatives[i - cases.positives]) / m);
  result.auroc = won / (m * n);
  return result;
}

// A patient's components, less their mean: sums over its positives and over its
// negatives.
struct Part {
  double positive = 0, negative = 0;
  bool has_positive = false, has_negative = false;
};

// Obuchowski's variance. Empty where no variance is defined.
std::optional<double> variance_of(const Components& c, const Cases& cases,
                                  const PatientNumbers& patients) {
  std::vector<Part> parts(patients.count);
  for (size_t i = 0; i < cases.index.size(); ++i) {
    Part& part = parts[patients.of_case[cases.index[i]]];
    const bool positive = i < cases.positives;
    (positive ? part.positive : part.negative) += c.of[i] - c.auroc;
    (positive ? part.has_positive : part.has_negative) = true;
  }
  double with_positive = 0, with_negative = 0, with_any = 0;
  double positive2 = 0, negative2 = 0, both = 0;
  for (const Part& part : parts) {
    with_positive += part.has_positive ? 1 : 0;
    with_negative += part.has_negative ? 1 : 0;
    with_any += part.has_positive || part.has_negative ? 1 : 0;
    positive2 += part.positive * part.positive;
    negative2 += part.negative * part.negative;
    both += part.positive * part.negative;
  }
  if (with_positive < 2 || with_negative < 2) return std::nullopt;
  const auto m = static_cast<double>(cases.positives);
  const auto n = static_cast<double>(cases.negatives());
  // The paper's S10 / m + S01 / n + 2 S11 / (m n).
  const double variance =
      with_positive / (with_positive - 1) * positive2 / (m * m) +
      with_negative / (with_negative - 1) * negative2 / (n * n) +
      2 * with_any / (with_any - 1) * both / (m * n);
  return std::max(variance, 0.0);
}

std::optional<Interval> logit_interval(double auroc, double variance) {
  if (auroc <= 0 || auroc >= 1 || variance <= 0) return std::nullopt;
  const double center = std::log(auroc / (1 - auroc));
  const double half = kNormal95 * std::sqrt(variance) / (auroc * (1 - auroc));
  const auto back = [](double x) { return 1 / (1 + std::exp(-x)); };
  return Interval{back(center - half), back(center + half)};
}

PairedTest paired_test(double difference, double variance) {
  const double deviation = std::sqrt(variance);
  PairedTest test{.difference = difference, .variance = variance};
  test.interval = cut_to(
      {difference - kNormal95 * deviation, difference + kNormal95 * deviation},
      -1, 1);
  if (variance > 0)
    test.p = std::erfc(std::abs(difference) / deviation / std::numbers::sqrt2);
  return test;
}

}  // namespace

std::optional<AurocVariance> delong(std::span<const double> scores,
                                    std::span<const float> labels) {
  return delong_by_patient(scores, labels, one_patient_per_case(labels.size()));
}

std::optional<AurocVariance> delong_by_patient(std::span<const double> scores,
                                               std::span<const float> labels,
                                               const PatientNumbers& patients) {
  assert(scores.size() == labels.size());
  const Cases cases = labeled_cases(labels);
  if (cases.positives == 0 || cases.negatives() == 0) return std::nullopt;
  const auto c = components(scores, cases);
  if (!c) return std::nullopt;
  const auto variance = variance_of(*c, cases, patients);
  if (!variance) return std::nullopt;
  return AurocVariance{c->auroc, *variance,
                       logit_interval(c->auroc, *variance)};
}

std::optional<PairedTest> delong_test(std::span<const double> a,
                                      std::span<const double> b,
                                      std::span<const float> labels) {
  return delong_test_by_patient(a, b, labels,
                                one_patient_per_case(labels.size()));
}

std::optional<PairedTest> delong_test_by_patient(
    std::span<const double> a, std::span<const double> b,
    std::span<const float> labels, const PatientNumbers& patients) {
  assert(a.size() == labels.size() && b.size() == labels.size());
  const Cases cases = labeled_cases(labels);
  if (cases.positives == 0 || cases.negatives() == 0) return std::nullopt;
  const auto of_a = components(a, cases), of_b = components(b, cases);
  if (!of_a || !of_b) return std::nullopt;
  Components differences;
  differences.auroc = of_a->auroc - of_b->auroc;
  for (size_t i = 0; i < of_a->of.size(); ++i)
    differences.of.push_back(of_a->of[i] - of_b->of[i]);
  const auto variance = variance_of(differences, cases, patients);
  if (!variance) return std::nullopt;
  return paired_test(differences.auroc, *variance);
}

}  // namespace chexnet
