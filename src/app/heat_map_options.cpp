// Each rank writes the pictures of the images that it computes, and rank 0 the
// list of all.
#include "heat_map_options.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <filesystem>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/report/heat_map_overlay.hpp"
#include "chexnet/train/heat_map_pass.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfANamePart = 80;  // bytes

// A part of a file's name: nothing of an image's name leads elsewhere.
std::string name_part(std::string text) {
  if (text.size() > kMostOfANamePart) text.resize(kMostOfANamePart);
  for (char& c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                       (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return text;
}

// "000012_chest_05_Mass.png"; the numbers of image and finding make it the only
// one of its name.
std::string file_name(size_t row, const std::string& image, size_t k,
                      const std::string& finding) {
  std::array<char, 24> number{}, output{};
  std::snprintf(number.data(), number.size(), "%06zu", row + 1);
  std::snprintf(output.data(), output.size(), "%02zu", k + 1);
  return std::string(number.data()) + "_" +
         name_part(fs::path(image).stem().string()) + "_" + output.data() +
         "_" + name_part(finding) + ".png";
}

}  // namespace

void add_heat_map_kind(CLI::App& command, HeatMapKind& kind) {
  const std::map<std::string, HeatMapMethod> names = {
      {"cam", HeatMapMethod::kCam},
      {"grad-cam", HeatMapMethod::kGradCam},
      {"layer-cam", HeatMapMethod::kLayerCam}};
  command
      .add_option("--heatmap-method", kind.method,
                  "layer-cam (the default: an earlier layer's maps by "
                  "gradients, which point best), cam (class activation map: "
                  "shares of the logit) or grad-cam (its positive parts up to "
                  "scale)")
      ->transform(CLI::CheckedTransformer(names).description(
          "{layer-cam,cam,grad-cam}"));
}

void require_heat_maps(const CLI::App& command, const std::string& wanted_by) {
  const auto given = [&](const std::string& name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  if (given(wanted_by)) return;
  for (const char* name :
       {"--heatmap-findings", "--heatmap-method", "--heatmap-size"})
    if (given(name)) throw CLI::RequiresError(name, wanted_by);
}

void add_heat_map_options(CLI::App& command, HeatMapOptions& options) {
  command
      .add_option("--heatmaps", options.folder,
                  "write pictures of where scores come from to this folder")
      ->check(in_file_system());
  add_repeated_option(command, "--heatmap-findings", options.findings,
                      "heat maps of these findings, for every image (default: "
                      "of those that the model's own thresholds call positive; "
                      "without any, at 0.5)")
      ->delimiter(',');
  add_heat_map_kind(command, options.kind);
  const CLI::Validator side(
      [](const std::string& text) {
        int pixels = 0;
        const bool fits = CLI::detail::lexical_cast(text, pixels) &&
                          pixels <= 32768 &&
                          (pixels == 0 || pixels >= kLeastOverlaySide);
        return fits ? std::string()
                    : formatted("{} is neither 0 nor in {} - 32768", text,
                                kLeastOverlaySide);
      },
      "");
  command
      .add_option("--heatmap-size", options.most_pixels,
                  "with --heatmaps: the longer side of a picture with its "
                  "caption at most, in pixels; 0 leaves each at its own size, "
                  "which takes seconds a map for a clinical one")
      ->capture_default_str()
      ->check(side);
}

void check_heat_map_options(const HeatMapOptions& options,
                            const std::vector<std::string>& known) {
  for (const auto& finding : options.findings)
    if (!find_finding(known, finding))
      throw ConfigError(
          "[heat maps] the network does not know '{}'. Hint: it knows {}",
          finding, listed(known, known.size()));
}

HeatMapFolder::HeatMapFolder(const HeatMapOptions& options,
                             std::vector<std::string> findings,
                             std::vector<double> thresholds)
    : options_(options),
      findings_(std::move(findings)),
      thresholds_(std::move(thresholds)) {
  assert(thresholds_.size() == findings_.size());
  for (const auto& finding : options.findings)
    named_.push_back(*find_finding(findings_, finding));
}

bool HeatMapFolder::is_wanted(size_t finding, double probability) const {
  if (!named_.empty()) return std::ranges::count(named_, finding) > 0;
  return probability >= thresholds_[finding];
}

HeatMapFiles HeatMapFolder::choose(size_t row, const std::string& image,
                                   std::span<const double> probabilities) {
  assert(probabilities.size() == findings_.size());
  HeatMapFiles files;
  for (size_t k = 0; k < findings_.size(); ++k) {
    if (!is_wanted(k, probabilities[k])) continue;
    files.emplace_back(findings_[k], file_name(row, image, k, findings_[k]));
    rows_[row].image = image;
    rows_[row].pictures.push_back({k, probabilities[k], files.back().second});
  }
  return files;
}

void HeatMapFolder::write_list() const {
  std::string text = "file,image,finding,probability\n";
  const fs::path folder = options_.folder;
  for (const auto& [_, row] : rows_)
    for (const auto& picture : row.pictures) {
      if (!fs::exists(folder / picture.file)) continue;  // its image has gone
      text += picture.file + "," + csv_field(row.image) + "," +
              csv_field(findings_[picture.finding]) + "," +
              csv_number(picture.probability) + "\n";
    }
  write_atomically(folder / "heatmaps.csv", text);
}

std::string HeatMapFolder::text() const {
  int64_t count = 0;
  for (const auto& [_, row] : rows_) count += std::ssize(row.pictures);
  return counted(count, "heat map") + " in " + options_.folder;
}

bool HeatMapFolder::write(const RunContext& run,
                          const std::function<bool()>& stop) const {
  const fs::path folder = options_.folder;
  std::vector<uint32_t> rows;
  for (const auto& [number, _] : rows_)
    rows.push_back(static_cast<uint32_t>(number));
  const auto use = [&](const MappedImage& image) {
    for (const auto& picture : rows_.at(image.row).pictures) {
      const size_t k = picture.finding;
      write_overlay(
          folder / picture.file, image,
          {k, thresholds_[k], options_.kind.method},
          {.caption = findings_[k] + "  " + fixed(picture.probability, 2),
           .most_width = width_within(options_.most_pixels, image.picture)});
    }
  };
  const HeatMapPass pass{options_.kind, "heat maps", true};
  if (!for_each_map(run, rows, pass, use, stop)) {
    if (run.comm.rank() == 0)
      log_warning("[heat maps] " + options_.folder +
                  ": stopped; some pictures are missing, and so is "
                  "heatmaps.csv");
    return false;
  }
  run.comm.barrier();  // the list comes last
  if (run.comm.rank() == 0) write_list();
  return true;
}

}  // namespace chexnet
