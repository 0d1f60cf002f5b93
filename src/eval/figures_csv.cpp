#include "chexnet/eval/figures_csv.hpp"

#include <utility>

#include "chexnet/core/csv.hpp"

namespace chexnet {
namespace {

std::string cell(const std::optional<double>& value) {
  return value ? csv_number(*value) : "";
}

std::optional<Interval> interval_of(
    const std::optional<PercentileInterval>& found) {
  if (!found) return std::nullopt;
  return found->interval;
}

// What the next lines are of.
struct Subject {
  std::string finding;
  std::string rule = {};
  std::optional<double> threshold = {};
  std::optional<size_t> positives = {}, negatives = {};
  std::string group = {};
  bool few_positives = false;
};

class Table {
 public:
  void of(const Subject& subject) {
    const auto count = [](const std::optional<size_t>& number) {
      return number ? std::to_string(*number) : std::string();
    };
    first_ = csv_field(subject.finding);
    rule_ = "," + csv_field(subject.rule) + "," + cell(subject.threshold);
    last_ = "," + count(subject.positives) + "," + count(subject.negatives) +
            "," + csv_field(subject.group) + "," +
            (subject.few_positives ? "1" : "0");
  }
  void add(const std::string& figure, const std::optional<double>& value,
           const std::optional<Interval>& interval = std::nullopt) {
    text_ += first_ + "," + figure + rule_ + "," + cell(value) + ",";
    if (interval)
      text_ += cell(interval->low) + "," + cell(interval->high);
    else
      text_ += ",";
    text_ += last_ + "\n";
  }
  void add(const std::string& figure, const Estimate& estimate) {
    add(figure, estimate.value, interval_of(estimate.interval));
  }
  void add(const std::string& figure, const Proportion& proportion) {
    add(figure, proportion.value(), proportion.interval());
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_ =
      "finding,figure,rule,threshold,value,low,high,positives,negatives,group,"
      "few_positives\n";
  std::string first_, rule_, last_;
};

void add_finding(const FindingFigures& f, Table& table) {
  table.of({.finding = f.finding,
            .positives = f.positives,
            .negatives = f.negatives,
            .few_positives = f.few_positives()});
  table.add("auroc", f.auroc);
  table.add("auroc_delong", f.auroc.value, f.delong);
  table.add("average_precision", f.average_precision);
  table.add("brier", f.brier);
  table.add("calibration_error_equal_widths", f.error_in_equal_widths);
  table.add("calibration_error_equal_masses", f.error_in_equal_masses);
}

void add_point(const OperatingPoint& p, std::optional<double> prevalence,
               Table& table) {
  const Confusion& c = p.confusion;
  Subject subject{.finding = p.finding,
                  .rule = p.rule,
                  .threshold = p.threshold,
                  .few_positives = p.few_positives()};
  if (p.threshold) {
    subject.positives = c.positives();
    subject.negatives = c.negatives();
  }
  table.of(subject);
  table.add("sensitivity", c.sensitivity());
  table.add("specificity", c.specificity());
  table.add("ppv", c.ppv());
  table.add("npv", c.npv());
  table.add("f1", c.f1());
  if (!prevalence) return;
  table.add("ppv_at_prevalence", c.ppv_at(*prevalence));
  table.add("npv_at_prevalence", c.npv_at(*prevalence));
}

void add_bins(const Reliability& r, const std::string& binning,
              const std::vector<ReliabilityBin>& bins, Table& table) {
  size_t number = 0;  // edges at quantiles may be equal
  for (const ReliabilityBin& bin : bins) {
    table.of({.finding = r.finding,
              .rule = r.calibration,
              .positives = bin.positives,
              .negatives = bin.cases - bin.positives,
              .group = binning + " " + std::to_string(++number) + ": " +
                       csv_number(bin.low) + "-" + csv_number(bin.high),
              .few_positives = bin.positives < kFewPositives});
    const bool empty = bin.cases == 0;
    table.add("mean_probability",
              empty ? std::nullopt : std::optional(bin.mean_probability));
    table.add("rate", Proportion{bin.positives, bin.cases});
  }
}

void add_reliability(const Reliability& r, Table& table) {
  if (r.calibration != "none") {  // which add_finding() has
    table.of({.finding = r.finding,
              .rule = r.calibration,
              .positives = r.positives,
              .negatives = r.negatives,
              .few_positives = r.few_positives()});
    table.add("brier", r.brier);
    table.add("calibration_error_equal_widths", r.error_in_equal_widths);
    table.add("calibration_error_equal_masses", r.error_in_equal_masses);
  }
  add_bins(r, "equal_widths", r.equal_widths, table);
  add_bins(r, "equal_masses", r.equal_masses, table);
}

void add_subgroups(const SubgroupTable& subgroups, Table& table) {
  for (size_t k = 0; k < subgroups.findings.size(); ++k) {
    for (const Subgroup& group : subgroups.of[k].groups) {
      table.of({.finding = subgroups.findings[k],
                .positives = group.positives,
                .negatives = group.negatives,
                .group = subgroups.column + "=" + group.value,
                .few_positives = group.few_positives()});
      table.add("auroc", group.auroc, interval_of(group.interval));
      table.add("auroc_gap", group.gap, interval_of(group.gap_interval));
    }
    table.of({.finding = subgroups.findings[k], .group = subgroups.column});
    table.add("auroc_largest_gap", subgroups.of[k].largest_gap);
  }
}

void add_comparison(const Comparison& comparison, Table& table) {
  for (const FindingComparison& f : comparison.findings) {
    table.of({.finding = f.finding,
              .positives = f.positives,
              .negatives = f.negatives,
              .few_positives = f.few_positives()});
    table.add("auroc_against", f.auroc_b);
    table.add("auroc_difference", f.difference);
    table.add("auroc_difference_p", f.p);
    if (!f.delong) continue;
    table.add("auroc_difference_delong", f.delong->difference,
              f.delong->interval);
    table.add("auroc_difference_p_delong", f.delong->p);
  }
  table.of({.finding = ""});
  table.add("mean_auroc_difference", comparison.mean_difference);
  table.add("mean_auroc_difference_p", comparison.mean_p);
}

}  // namespace

std::string figures_csv(const FigureTables& tables) {
  Table table;
  const Figures& figures = tables.figures;
  for (const auto& finding : figures.findings) add_finding(finding, table);
  table.of({.finding = ""});
  table.add("mean_auroc", figures.mean_auroc);
  table.add("any_finding_auroc_mean_logit", figures.any_finding.auroc);
  for (const auto& p : tables.points) add_point(p, tables.prevalence, table);
  for (const auto& r : tables.reliability) add_reliability(r, table);
  for (const auto& subgroups : tables.subgroups)
    add_subgroups(subgroups, table);
  if (tables.comparison != nullptr) add_comparison(*tables.comparison, table);
  return std::move(table).text();
}

}  // namespace chexnet
