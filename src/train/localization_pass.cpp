// Each rank sends lines of the cases that it scored; a case that nobody sent
// was damaged.
#include "chexnet/train/localization_pass.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

struct Line {
  uint64_t number = 0;  // of the case
  MapScore score;
};
static_assert(std::is_trivially_copyable_v<Line>);

void refuse_packs(const ImageSource& source) {
  if (!source.packs().empty())
    throw ConfigError(
        "[boxes] a pack does not know how large its pictures were, and boxes "
        "are in their pixels. Hint: --boxes-side 1024 for NIH's list");
}

std::vector<uint32_t> rows_of(const std::vector<BoxedCase>& cases) {
  std::vector<uint32_t> rows;
  for (const auto& c : cases)
    if (rows.empty() || rows.back() != c.row) rows.push_back(c.row);
  return rows;
}

}  // namespace

std::optional<std::vector<MapScore>> score_boxes(
    const RunContext& run, const std::vector<BoxedCase>& cases, int side,
    const HeatMapKind& kind, const std::function<bool()>& stop) {
  if (side == 0) refuse_packs(*run.dataset.images);
  std::multimap<uint32_t, size_t> of_row;
  for (size_t i = 0; i < cases.size(); ++i) of_row.emplace(cases[i].row, i);

  const int input = static_cast<int>(run.config.data.crop);
  std::vector<Line> own;
  const auto use = [&](const MappedImage& image) {
    const PictureSize picture =
        side > 0 ? PictureSize{side, side}
                 : PictureSize{image.picture.width(), image.picture.height()};
    const auto [first, last] = of_row.equal_range(image.row);
    for (auto at = first; at != last; ++at) {
      const BoxedCase& asked = cases[at->second];
      own.push_back({at->second, score_map(image.map(asked.finding),
                                           asked.boxes, picture, input)});
    }
  };
  if (!for_each_map(run, rows_of(cases), {kind, "heat maps"}, use, stop))
    return std::nullopt;

  std::vector<MapScore> scores(cases.size());
  for (const auto& part : run.comm.all_gather(std::as_bytes(std::span(own))))
    for (size_t at = 0; at < part.size(); at += sizeof(Line)) {
      Line line;
      std::memcpy(&line, part.data() + at, sizeof line);
      scores[line.number] = line.score;
    }
  return scores;
}

}  // namespace chexnet
