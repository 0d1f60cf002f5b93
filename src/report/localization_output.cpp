#include "localization_output.hpp"

#include <vector>

#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "figure_output.hpp"

namespace chexnet {
namespace {

using chexnet::json_of;     // beside those below
constexpr int kDigits = 2;  // of fractions in tables
using IouEstimates = std::array<Estimate, kIouThresholds.size()>;

void add_ious(const IouEstimates& estimates, std::vector<std::string>& line) {
  for (const Estimate& e : estimates)
    line.push_back(figure_text(e.value, kDigits));
}

const char* star(bool few) { return few ? " *" : ""; }

void add_called(size_t cases, const Estimate& pointing, bool few,
                std::vector<std::string>& line) {
  line.push_back(std::to_string(cases) + star(few));
  line.push_back(figure_text(pointing.value, kDigits));
}

// "  mean of 9 findings, 2 *"
std::string mean_label(const FindingsInMean& mean) {
  return "  mean of " +
         counted(static_cast<int64_t>(mean.findings), "finding") +
         (mean.few > 0 ? ", " + std::to_string(mean.few) + " *" : "");
}

Json json_of(const Estimate& e) {
  return {{"value", json_of(e.value)}, {"interval", json_of(e.interval)}};
}

Json json_of(const Estimate& mean, const FindingsInMean& of) {
  Json json = json_of(mean);
  json["findings"] = of.findings;
  json["few_cases"] = of.few;
  return json;
}

Json json_of(const IouEstimates& estimates) {
  Json json;
  for (size_t t = 0; t < estimates.size(); ++t)
    json[fixed(kIouThresholds[t], 1)] = json_of(estimates[t]);
  return json;
}

}  // namespace

// One line a finding, then the mean over findings. "boxes of a map" tells a
// good IoU from a lucky one: a map with many regions hits something.
std::string localization_text(const Localization& localization) {
  std::vector<std::vector<std::string>> lines = {
      {"  finding", "images", "pointing", "95 %"}};
  const bool called = localization.knows_called;
  if (called) lines[0].insert(lines[0].end(), {"called", "pointing"});
  for (const double t : kIouThresholds)
    lines[0].push_back("IoU " + fixed(t, 1));
  lines[0].insert(lines[0].end(), {"mean IoU", "boxes of a map"});
  const FindingsInMean mean = localization.in_mean();
  const FindingsInMean mean_of_called = localization.in_mean_of_called();
  bool intervals = true;
  size_t all_called = 0;
  for (const auto& f : localization.findings) {
    intervals = intervals && f.pointing.interval;
    lines.push_back({"  " + f.finding + star(f.few_cases()),
                     std::to_string(f.cases),
                     figure_text(f.pointing.value, kDigits),
                     interval_text(f.pointing.interval, " - ", kDigits)});
    if (called)
      add_called(f.called, f.pointing_of_called, f.few_called(), lines.back());
    all_called += f.called;
    add_ious(f.iou_at, lines.back());
    lines.back().push_back(fixed(f.mean_iou, 2));
    lines.back().push_back(fixed(f.boxes_per_map, 1));
  }
  lines.push_back(
      {mean_label(mean), std::to_string(localization.cases),
       figure_text(localization.mean_pointing.value, kDigits),
       interval_text(localization.mean_pointing.interval, " - ", kDigits)});
  if (called)
    add_called(all_called, localization.mean_pointing_of_called,
               mean_of_called.few > 0, lines.back());
  add_ious(localization.mean_iou_at, lines.back());
  lines.back().insert(lines.back().end(), {"-", "-"});

  std::string text =
      "\n\nHeat maps against boxes: share of images with the map's highest "
      "point in a box, and with an IoU of at least T\n" +
      columns(lines);
  if (called)
    text +=
        "  called: of these images, positive by Youden's threshold, and the "
        "share of them with the point in a box\n";
  if (mean.few > 0 || (called && mean_of_called.few > 0))
    text +=
        "  * rough: fewer than ten images, or a mean that counts findings with "
        "so few\n";
  if (!intervals)
    text +=
        "  no interval (-): fewer than five patients, or no resample differs\n";
  if (localization.damaged > 0)
    text += "  left out: " + std::to_string(localization.damaged) +
            " of damaged images\n";
  if (localization.outside > 0)
    text += "  left out: " + std::to_string(localization.outside) +
            " whose boxes lie outside of their pictures\n";
  text.pop_back();  // whoever prints ends the line
  return text;
}

// Figures with their intervals, and the boxes left out and why: without it a
// fraction of few images looks like one of many.
Json localization_json(const Localization& localization) {
  Json json;
  json["cases"] = localization.cases;
  json["images"] = localization.images;
  json["patients"] =
      localization.patients > 0 ? Json(localization.patients) : Json(nullptr);
  json["damaged"] = localization.damaged;
  json["outside"] = localization.outside;
  json["cut_boxes"] = localization.cut_boxes;
  json["other_images"] = localization.asked.other_images;
  json["unknown_findings"] = localization.asked.unknown_findings;
  const bool called = localization.knows_called;
  for (const auto& f : localization.findings) {
    json["findings"][f.finding] = {{"cases", f.cases},
                                   {"few_cases", f.few_cases()},
                                   {"pointing", json_of(f.pointing)},
                                   {"iou_at", json_of(f.iou_at)},
                                   {"mean_iou", f.mean_iou},
                                   {"boxes_per_map", f.boxes_per_map}};
    if (called)
      json["findings"][f.finding]["called"] = {
          {"cases", f.called},
          {"few_cases", f.few_called()},
          {"pointing", json_of(f.pointing_of_called)}};
  }
  json["mean_pointing"] =
      json_of(localization.mean_pointing, localization.in_mean());
  if (called)
    json["mean_pointing_of_called"] = json_of(
        localization.mean_pointing_of_called, localization.in_mean_of_called());
  json["mean_iou_at"] = json_of(localization.mean_iou_at);
  return json;
}

}  // namespace chexnet
