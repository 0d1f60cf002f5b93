#include "chexnet/eval/figures_csv.hpp"

#include <utility>

#include "chexnet/core/csv.hpp"

namespace chexnet {
namespace {

std::string cell(const std::optional<double>& value) {
  return value ? csv_number(*value) : "";
}

class Table {
 public:
  // What the next lines are of.
  void of_finding(const FindingFigures& f) {
    first_ = csv_field(f.finding);
    rule_ = ",,";
    counts_ =
        "," + std::to_string(f.positives) + "," + std::to_string(f.negatives);
  }
  void of_point(const OperatingPoint& p) {
    first_ = csv_field(p.finding);
    rule_ = "," + csv_field(p.rule) + "," + cell(p.threshold);
    counts_ = ",,";
    if (p.threshold)
      counts_ = "," + std::to_string(p.confusion.positives()) + "," +
                std::to_string(p.confusion.negatives());
  }
  void of_all() {
    first_.clear();
    rule_ = counts_ = ",,";
  }
  void add(const std::string& figure, const std::optional<double>& value,
           const std::optional<Interval>& interval = std::nullopt) {
    text_ += first_ + "," + figure + rule_ + "," + cell(value) + ",";
    if (interval)
      text_ += cell(interval->low) + "," + cell(interval->high);
    else
      text_ += ",";
    text_ += counts_ + "\n";
  }
  void add(const std::string& figure, const Estimate& estimate) {
    add(figure, estimate.value,
        estimate.interval ? std::optional(estimate.interval->interval)
                          : std::nullopt);
  }
  void add(const std::string& figure, const Share& share) {
    add(figure, share.value(), share.interval());
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_ =
      "finding,figure,rule,threshold,value,low,high,positives,negatives\n";
  std::string first_, rule_, counts_;
};

void add_finding(const FindingFigures& f, Table& table) {
  table.of_finding(f);
  table.add("auroc", f.auroc);
  table.add("auroc_delong", f.auroc.value, f.delong);
  table.add("average_precision", f.average_precision);
  table.add("brier", f.brier);
  table.add("calibration_error_equal_widths", f.error_in_equal_widths);
  table.add("calibration_error_equal_masses", f.error_in_equal_masses);
}

void add_point(const OperatingPoint& p, std::optional<double> prevalence,
               Table& table) {
  table.of_point(p);
  const Confusion& c = p.confusion;
  table.add("sensitivity", c.sensitivity());
  table.add("specificity", c.specificity());
  table.add("ppv", c.ppv());
  table.add("npv", c.npv());
  table.add("f1", c.f1());
  if (!prevalence) return;
  table.add("ppv_at_prevalence", c.ppv_at(*prevalence));
  table.add("npv_at_prevalence", c.npv_at(*prevalence));
}

}  // namespace

std::string figures_csv(const Figures& figures,
                        std::span<const OperatingPoint> points,
                        std::optional<double> prevalence) {
  Table table;
  for (const auto& finding : figures.findings) add_finding(finding, table);
  table.of_all();
  table.add("mean_auroc", figures.mean_auroc);
  table.add("any_finding_auroc_mean_logit", figures.any_finding.auroc);
  for (const auto& point : points) add_point(point, prevalence, table);
  return std::move(table).text();
}

}  // namespace chexnet
