// Rank 0 knows the thresholds, so it chooses; every rank draws the maps of the
// images that it computes.
#include "example_maps.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/eval/examples.hpp"
#include "chexnet/train/heat_map_pass.hpp"

namespace chexnet {
namespace {

constexpr int kWidth = 336;  // pixels: a page of twelve stays small

Json chosen(const Predictions& predictions, const DecisionRules& rules,
            size_t most) {
  Json list = Json::array();
  for (const auto& e : choose_examples(predictions, rules, most))
    list.push_back({{"file", std::to_string(list.size() + 1) + ".png"},
                    {"image", predictions.images[e.image]},
                    {"finding", predictions.findings[e.finding]},
                    {"kind", e.kind},
                    {"probability", e.probability},
                    {"threshold", e.threshold},
                    {"row", e.image},
                    {"output", e.finding}});
  return list;
}

// Rank 0 empties and makes the folder.
void begin_folder(const std::filesystem::path& folder, Communicator& comm) {
  std::error_code error;
  if (comm.rank() == 0) {
    std::filesystem::remove_all(folder, error);
    std::filesystem::create_directories(folder, error);
  }
  if (any_rank(comm, static_cast<bool>(error)))
    throw CheckpointError("[report] {}: {}. Hint: is the run folder writable?",
                          folder.string(),
                          error ? error.message() : "see rank 0");
}

}  // namespace

bool write_examples(const TrainingLoop::Parts& parts, const Split& split,
                    const Predictions& predictions,
                    const DecisionRules& rules) {
  Communicator& comm = parts.comm;
  const auto most = static_cast<size_t>(parts.config.eval.examples);
  const std::string told = broadcast_text(
      comm,
      comm.rank() == 0 ? json_text(chosen(predictions, rules, most)) : "");
  Json list = Json::parse(told);
  if (list.empty()) return true;
  const auto folder = parts.folder.path() / "examples";
  begin_folder(folder, comm);
  std::multimap<uint32_t, Json> of_row;  // of the manifest
  std::vector<uint32_t> rows;
  for (const auto& example : list) {
    const uint32_t row = split.rows[example["row"].get<size_t>()];
    if (!of_row.contains(row)) rows.push_back(row);
    of_row.emplace(row, example);
  }
  const auto draw = [&](const MappedImage& image) {
    const auto [first, last] = of_row.equal_range(image.row);
    for (auto it = first; it != last; ++it) {
      const Json& example = it->second;
      const auto threshold = example["threshold"].get<double>();
      write_overlay(folder / example["file"].get<std::string>(), image,
                    {example["output"].get<size_t>(), threshold},
                    {.caption = example["finding"].get<std::string>(),
                     .most_width = kWidth});
    }
  };
  if (!for_each_map(parts, rows, {{}, "examples"}, draw,
                    [&] { return parts.stop.asked(0); }))
    return false;
  comm.barrier();  // the list comes last
  for (auto& example : list) {
    example.erase("row");
    example.erase("output");
  }
  if (comm.rank() == 0)
    write_atomically(folder / "examples.json", json_text(list, 1) + "\n");
  return true;
}

}  // namespace chexnet
