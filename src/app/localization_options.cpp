// --boxes of `evaluate`: heat maps compared with boxes that radiologists drew.
// Nothing to score is an error; a partial score is reported.
#include "localization_options.hpp"

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/train/localization_pass.hpp"
#include "heat_map_options.hpp"

namespace chexnet {
namespace {

size_t box_count(const BoxedCases& asked) {
  size_t boxes = 0;
  for (const auto& c : asked.cases) boxes += c.boxes.size();
  return boxes;
}

void refuse_empty(const BoxedCases& asked, const BoxOptions& options,
                  const Split& split) {
  if (!asked.cases.empty()) return;
  std::string unknown = listed(asked.unknown_findings);
  if (!unknown.empty()) unknown = "; findings it does not know: " + unknown;
  throw DataError(
      "[boxes] {}: no box is on an image of the {} split and of a finding that "
      "the network knows{}. Hint: --split test; names of images as in the "
      "table",
      options.list, split.name, unknown);
}

void say_what_has_no_score(const Localization& found,
                           const BoxOptions& options) {
  const BoxedCases& asked = found.asked;
  if (!asked.unknown_findings.empty())
    log_info("[boxes] not scored, as the network does not know it: " +
             listed(asked.unknown_findings));
  if (asked.other_images > 0)
    log_info("[boxes] " +
             counted(static_cast<int64_t>(asked.other_images), "image") +
             " of " + options.list + " not in this split");
  if (found.outside > 0 || found.cut_boxes > 0)
    log_warning("[boxes] " + std::to_string(found.cut_boxes) + " of " +
                std::to_string(box_count(asked)) +
                " boxes reach out of their pictures and were cut; " +
                counted(static_cast<int64_t>(found.outside), "case") +
                " of an image and a finding have none inside and are not "
                "scored. Hint: "
                "--boxes-side 1024 for NIH's list on resized pictures");
}

// Figures of what is left of them would look like results.
void refuse_other_scale(const Localization& found, const BoxOptions& options) {
  if (found.cut_boxes == 0 || found.cut_boxes < box_count(found.asked)) return;
  throw DataError(
      "[boxes] {}: all of its boxes on these images ({}) reach out of their "
      "pictures, so they were drawn on pictures of another size. Hint: "
      "--boxes-side, which is 1024 for NIH's list on resized pictures",
      options.list, found.cut_boxes);
}

}  // namespace

void add_box_options(CLI::App& command, BoxOptions& options,
                     CLI::Option* without) {
  auto* boxes = command
                    .add_option("--boxes", options.list,
                                "score heat maps against this list of boxes "
                                "(BBox_List_2017.csv)")
                    ->excludes(without)
                    ->check(in_file_system());
  command
      .add_option("--boxes-side", options.side,
                  "with --boxes: side of the square pictures that the boxes "
                  "were drawn on, pixels; 1024 for NIH's list on resized "
                  "pictures (default: each picture's own size)")
      ->needs(boxes)
      ->check(CLI::Range(1, 65535));
  add_heat_map_kind(command, options.kind);
}

std::optional<std::vector<FindingBox>> read_listed_boxes(
    const BoxOptions& options, const S3Config& s3) {
  if (options.list.empty()) return std::nullopt;
  return read_boxes(options.list, s3);
}

std::optional<Localization> localize(const RunContext& run, const Split& split,
                                     const std::vector<FindingBox>& boxes,
                                     const BoxOptions& options,
                                     const CalledPositive& called,
                                     const std::function<bool()>& stop) {
  const Manifest& manifest = run.dataset.manifest;
  BoxedCases asked = boxed_cases(boxes, manifest, split.rows);
  refuse_empty(asked, options, split);
  auto scores = score_boxes(run, asked.cases, options.side, options.kind, stop);
  if (!scores) return std::nullopt;
  if (run.comm.rank() != 0) return Localization{};
  if (called.rules != nullptr)
    mark_called(*scores, asked, manifest, called.predictions, *called.rules);
  Localization found = localization_of(std::move(asked), *scores, manifest,
                                       {.threads = run.device.cores});
  found.knows_called = called.rules != nullptr;
  refuse_other_scale(found, options);
  say_what_has_no_score(found, options);
  return found;
}

}  // namespace chexnet
