#include "chexnet/eval/localization.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "chexnet/data/findings.hpp"
#include "chexnet/eval/bootstrap.hpp"
#include "map_regions.hpp"

namespace chexnet {
namespace {

// The gray levels at which Wang et al. (CVPR 2017) cut a map that
// was stretched to 0 ... 255.
constexpr std::array kCuts = {60.0f, 180.0f};  // of 255

Box box_of(const FindingBox& drawn, PictureSize picture) {
  const double w = picture.width, h = picture.height;
  return {drawn.x / w, drawn.y / h, (drawn.x + drawn.width) / w,
          (drawn.y + drawn.height) / h};
}

// By more than a pixel: lists of boxes are rounded.
bool reaches_out(const FindingBox& drawn, PictureSize picture) {
  return drawn.x < -1 || drawn.y < -1 ||
         drawn.x + drawn.width > picture.width + 1 ||
         drawn.y + drawn.height > picture.height + 1;
}

// Of one finding: what the figures are means of.
struct FindingColumns {
  CaseValues pointing, pointing_of_called;
  std::array<CaseValues, kIouThresholds.size()> iou_at;
  double iou = 0, boxes = 0;

  void add(const MapScore& score, uint32_t image) {
    const auto put = [&](CaseValues& column, bool hit) {
      column.values.push_back(hit ? 1 : 0);
      column.cases.push_back(image);
    };
    put(pointing, score.pointed);
    if (score.called) put(pointing_of_called, score.pointed);
    for (size_t t = 0; t < iou_at.size(); ++t)
      put(iou_at[t], score.iou >= kIouThresholds[t]);
    iou += score.iou;
    boxes += score.map_boxes;
  }
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// What is known of one figure of all findings: their columns, and the
// estimates that the means and replicates of these give.
class FigureOfFindings {
 public:
  // `column` and `estimate` outlive this; a finding without a case has none.
  void add(const CaseValues& column, Estimate& estimate) {
    if (column.values.empty()) return;
    columns_.push_back(column);
    estimates_.push_back(&estimate);
  }

  // Fills the findings' estimates; returns that of their mean.
  Estimate estimate(const PatientNumbers& patients,
                    const BootstrapOptions& options) const {
    if (columns_.empty()) return {};
    const auto replicates = bootstrap_means(columns_, patients, options);
    double sum = 0;
    bool enough = true;
    std::vector<std::span<const double>> drawn;
    for (size_t k = 0; k < columns_.size(); ++k) {
      const double value = mean(columns_[k].values);
      *estimates_[k] = {value, {}};
      if (has_enough_patients(columns_[k], patients))
        estimates_[k]->interval = percentile_interval(replicates[k]);
      else
        enough = false;
      drawn.emplace_back(replicates[k]);
      sum += value;
    }
    Estimate mean{sum / static_cast<double>(columns_.size()), {}};
    if (enough) mean.interval = percentile_interval(mean_of(drawn));
    return mean;
  }

 private:
  std::vector<CaseValues> columns_;
  std::vector<Estimate*> estimates_;
};

// Estimates of all figures. Each figure draws the same resamples.
void estimate_figures(const std::map<size_t, FindingColumns>& by_finding,
                      const PatientNumbers& patients,
                      const BootstrapOptions& options, Localization& into) {
  FigureOfFindings pointing, of_called;
  std::array<FigureOfFindings, kIouThresholds.size()> iou_at;
  auto f = into.findings.begin();
  for (const auto& [k, own] : by_finding) {
    pointing.add(own.pointing, f->pointing);
    of_called.add(own.pointing_of_called, f->pointing_of_called);
    for (size_t t = 0; t < iou_at.size(); ++t)
      iou_at[t].add(own.iou_at[t], f->iou_at[t]);
    ++f;
  }
  into.mean_pointing = pointing.estimate(patients, options);
  into.mean_pointing_of_called = of_called.estimate(patients, options);
  for (size_t t = 0; t < iou_at.size(); ++t)
    into.mean_iou_at[t] = iou_at[t].estimate(patients, options);
}

}  // namespace

FindingsInMean Localization::in_mean() const {
  FindingsInMean counts{findings.size(), 0};
  for (const auto& f : findings) counts.few += f.few_cases() ? 1 : 0;
  return counts;
}

FindingsInMean Localization::in_mean_of_called() const {
  FindingsInMean counts;
  for (const auto& f : findings) {
    if (f.called == 0) continue;
    ++counts.findings;
    counts.few += f.few_called() ? 1 : 0;
  }
  return counts;
}

// A case is a finding of an image, with all of its boxes: hitting one of two is
// a hit. Cases are sorted by row and finding, whatever the order of the list.
BoxedCases boxed_cases(std::span<const FindingBox> boxes,
                       const Manifest& manifest,
                       std::span<const uint32_t> rows) {
  std::unordered_map<std::string, uint32_t> row_of;
  for (const auto row : rows) row_of.emplace(manifest.images[row], row);
  BoxedCases result;
  std::set<std::string> other_images, unknown;
  std::map<std::pair<uint32_t, size_t>, BoxedCase> cases;
  for (const auto& drawn : boxes) {
    const auto row = row_of.find(drawn.image);
    const auto finding = find_finding(manifest.findings, drawn.finding);
    if (row == row_of.end()) other_images.insert(drawn.image);
    if (!finding) unknown.insert(drawn.finding);
    if (row == row_of.end() || !finding) continue;
    BoxedCase& found = cases[{row->second, *finding}];
    found.row = row->second;
    found.finding = *finding;
    found.boxes.push_back(drawn);
  }
  for (auto& [key, found] : cases) result.cases.push_back(std::move(found));
  result.other_images = other_images.size();
  result.unknown_findings.assign(unknown.begin(), unknown.end());
  return result;
}

// Around the regions above each cut, in fractions of the picture.
std::vector<Box> boxes_of_map(const HeatMap& map, int input) {
  std::vector<float> values = resized(map, input, input);
  const auto [low, high] = std::ranges::minmax(values);
  if (!(high > low)) return {};  // the same everywhere: no region
  for (float& v : values) v = 255 * ((v - low) / (high - low));
  const Box& place = map.place;
  const double across = (place.right - place.left) / input,
               down = (place.bottom - place.top) / input;
  std::vector<Box> boxes;
  for (const float cut : kCuts)
    for (const PixelBox& b : regions_above(values, input, cut))
      boxes.push_back({place.left + b.left * across, place.top + b.top * down,
                       place.left + b.right * across,
                       place.top + b.bottom * down});
  return boxes;
}

MapScore score_map(const HeatMap& map, std::span<const FindingBox> drawn,
                   PictureSize picture, int input) {
  assert(picture.width > 0 && picture.height > 0);
  MapScore score;
  std::vector<Box> boxes;
  for (const auto& d : drawn) {
    if (reaches_out(d, picture)) ++score.cut_boxes;
    const Box box = intersection(box_of(d, picture), Box{});
    if (box.area() > 0) boxes.push_back(box);
  }
  if (boxes.empty()) {
    score.state = MapScore::State::kOutside;
    return score;
  }
  score.state = MapScore::State::kScored;
  const Peak peak = peak_of(map);
  score.pointed = std::ranges::any_of(
      boxes, [&](const Box& box) { return box.holds(peak.x, peak.y); });
  const auto found = boxes_of_map(map, input);
  score.map_boxes = static_cast<int>(found.size());
  for (const Box& ours : found)
    for (const Box& theirs : boxes)
      score.iou = std::max(score.iou, intersection_over_union(ours, theirs));
  return score;
}

// Findings may stand in another order in `predictions` than in the manifest.
void mark_called(std::span<MapScore> scores, const BoxedCases& asked,
                 const Manifest& manifest, const Predictions& predictions,
                 const DecisionRules& rules) {
  assert(scores.size() == asked.cases.size());
  std::unordered_map<std::string, size_t> image_of;
  for (size_t i = 0; i < predictions.images.size(); ++i)
    image_of.emplace(predictions.images[i], i);
  for (size_t i = 0; i < scores.size(); ++i) {
    const BoxedCase& asked_case = asked.cases[i];
    const std::string& name = manifest.findings[asked_case.finding];
    const auto image = image_of.find(manifest.images[asked_case.row]);
    const auto k = find_finding(predictions.findings, name);
    const FindingRules* own = rules.find(name);
    if (image == image_of.end() || !k || own == nullptr) continue;
    const size_t at = image->second * predictions.findings.size() + *k;
    const auto threshold = own->threshold("youden");
    scores[i].called = threshold && predictions.probabilities[at] >= *threshold;
  }
}

Localization localization_of(BoxedCases asked, std::span<const MapScore> scores,
                             const Manifest& manifest,
                             const BootstrapOptions& options) {
  assert(scores.size() == asked.cases.size());
  Localization result;
  std::map<size_t, FindingColumns> by_finding;
  std::vector<std::string> names, patients;  // of images with a scored case
  std::optional<uint32_t> row;               // of the last of them
  for (size_t i = 0; i < scores.size(); ++i) {
    const BoxedCase& asked_case = asked.cases[i];
    const MapScore& score = scores[i];
    result.cut_boxes += static_cast<size_t>(score.cut_boxes);
    if (score.state == MapScore::State::kDamaged) ++result.damaged;
    if (score.state == MapScore::State::kOutside) ++result.outside;
    if (score.state != MapScore::State::kScored) continue;
    if (row != asked_case.row) {
      row = asked_case.row;
      ++result.images;
      names.push_back(manifest.images[*row]);
      if (manifest.knows_patients) patients.push_back(manifest.patients[*row]);
    }
    ++result.cases;
    by_finding[asked_case.finding].add(
        score, static_cast<uint32_t>(result.images - 1));
  }
  const PatientNumbers numbers =
      number_patients(manifest.knows_patients ? patients : names);
  if (manifest.knows_patients) result.patients = numbers.count;

  for (const auto& [k, own] : by_finding) {
    FindingLocalization& f = result.findings.emplace_back();
    f.finding = manifest.findings[k];
    f.cases = own.pointing.values.size();
    f.called = own.pointing_of_called.values.size();
    f.mean_iou = own.iou / static_cast<double>(f.cases);
    f.boxes_per_map = own.boxes / static_cast<double>(f.cases);
  }
  estimate_figures(by_finding, numbers, options, result);
  result.asked = std::move(asked);
  return result;
}

}  // namespace chexnet
