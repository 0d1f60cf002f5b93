// Which pictures there will be follows from the probabilities, which every rank
// knows: each rank writes those of the images that it computes, and rank 0 the
// list of all.
#include "heat_map_options.hpp"

#include <array>
#include <cstdio>
#include <filesystem>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/report/heat_map_overlay.hpp"
#include "chexnet/train/heat_map_pass.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfAName = 80;  // bytes

// A part of a file's name: nothing of an image's name leads elsewhere.
std::string name_part(std::string text) {
  if (text.size() > kMostOfAName) text.resize(kMostOfAName);
  for (char& c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                       (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return text;
}

// "000012_chest_Mass.png"; the number makes it the only one of its name.
std::string file_name(std::size_t row, const std::string& image,
                      const std::string& finding) {
  std::array<char, 24> number{};
  std::snprintf(number.data(), number.size(), "%06zu", row + 1);
  return std::string(number.data()) + "_" +
         name_part(fs::path(image).stem().string()) + "_" + name_part(finding) +
         ".png";
}

std::map<std::size_t, std::vector<std::size_t>> chosen_findings(
    const Predictions& p, const HeatMapOptions& options) {
  std::vector<std::size_t> named;
  for (const auto& finding : options.findings)
    named.push_back(*find_finding(p.findings, finding));
  std::map<std::size_t, std::vector<std::size_t>> chosen;  // by row
  const std::size_t findings = p.findings.size();
  for (std::size_t row = 0; row < p.images.size(); ++row) {
    if (!p.scored(row)) continue;
    std::vector<std::size_t> own = named;
    if (named.empty())
      for (std::size_t k = 0; k < findings; ++k)
        if (p.probabilities[row * findings + k] >= options.threshold)
          own.push_back(k);
    if (!own.empty()) chosen[row] = std::move(own);
  }
  return chosen;
}

void write_list(const Predictions& p, const fs::path& folder,
                const std::map<std::size_t, HeatMapFiles>& files) {
  std::string text = "file,image,finding,probability\n";
  for (const auto& [row, own] : files)
    for (const auto& [finding, file] : own) {
      const std::size_t k = *find_finding(p.findings, finding);
      text += file + "," + csv_field(p.images[row]) + "," + csv_field(finding) +
              "," + csv_number(p.probabilities[row * p.findings.size() + k]) +
              "\n";
    }
  write_atomically(folder / "heatmaps.csv", text);
}

void make_folder(const fs::path& folder, Communicator& comm) {
  std::error_code error;
  if (comm.rank() == 0) fs::create_directories(folder, error);
  if (error)
    throw CheckpointError("[heat maps] " + folder.string() + ": " +
                          error.message() + ". Hint: choose a writable folder");
  comm.barrier();
}

}  // namespace

void add_heat_map_kind(CLI::App& command, HeatMapKind& kind,
                       CLI::Option* wanted) {
  const std::map<std::string, HeatMapMethod> names = {
      {"cam", HeatMapMethod::kCam}, {"grad-cam", HeatMapMethod::kGradCam}};
  command
      .add_option("--heatmap-method", kind.method,
                  "cam (class activation map, the default) or grad-cam; for "
                  "these networks the positive parts are the same up to scale")
      ->transform(CLI::CheckedTransformer(names))
      ->needs(wanted);
  command
      .add_option("--heatmap-shifts", kind.shifts,
                  "1, 2 or 4: so many times finer a map, from so many times so "
                  "many shifted passes")
      ->capture_default_str()
      ->check(CLI::IsMember({1, 2, 4}))
      ->needs(wanted);
}

void add_heat_map_options(CLI::App& command, HeatMapOptions& options) {
  auto* folder =
      command
          .add_option("--heatmaps", options.folder,
                      "write pictures of where scores come from to this folder")
          ->check(in_file_system());
  auto* findings =
      add_repeated_option(command, "--heatmap-findings", options.findings,
                          "with --heatmaps: of these findings, for every image")
          ->delimiter(',')
          ->needs(folder);
  command
      .add_option("--heatmap-threshold", options.threshold,
                  "with --heatmaps: of findings with at least this "
                  "probability")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0))
      ->needs(folder)
      ->excludes(findings);
  add_heat_map_kind(command, options.kind, folder);
}

void check_heat_map_options(const HeatMapOptions& options,
                            const std::vector<std::string>& known) {
  if (options.folder.empty()) return;
  for (const auto& finding : options.findings)
    if (!find_finding(known, finding))
      throw ConfigError("[heat maps] the network does not know '" + finding +
                        "'. Hint: it knows " + listed(known, known.size()));
  std::error_code error;
  if (fs::exists(options.folder, error) && !fs::is_empty(options.folder, error))
    throw CheckpointError("[heat maps] " + options.folder +
                          ": is not an empty folder. Hint: name a new one");
}

std::pair<std::map<std::size_t, HeatMapFiles>, bool> write_heat_maps(
    const RunContext& run, const Predictions& predictions,
    const HeatMapOptions& options, const std::function<bool()>& stop) {
  const auto chosen = chosen_findings(predictions, options);
  std::map<std::size_t, HeatMapFiles> files;
  std::vector<std::uint32_t> rows;
  for (const auto& [row, findings] : chosen) {
    rows.push_back(static_cast<std::uint32_t>(row));
    for (const auto k : findings) {
      const std::string& finding = predictions.findings[k];
      files[row].emplace_back(finding,
                              file_name(row, predictions.images[row], finding));
    }
  }
  const fs::path folder = options.folder;
  make_folder(folder, run.comm);
  const std::size_t findings = predictions.findings.size();
  const auto use = [&](const MappedImage& image) {
    const auto& own = chosen.at(image.row);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto& [finding, name] = files[image.row][i];
      const double p = predictions.probabilities[image.row * findings + own[i]];
      OutputFile file(folder / name);
      file.write(overlay_png(image.picture, image.map(own[i]),
                             {.caption = finding + "  " + fixed(p, 2),
                              .unit = unit_of(options.kind.method)}));
      file.commit();
    }
  };
  if (!for_each_map(run, rows, {options.kind, "heat maps"}, use, stop))
    return {{}, false};
  run.comm.barrier();  // the list comes last
  if (run.comm.rank() == 0) {
    write_list(predictions, folder, files);
    std::int64_t count = 0;
    for (const auto& [row, own] : files) count += std::ssize(own);
    log_info(counted(count, "heat map") + " in " + options.folder);
  }
  return {std::move(files), true};
}

}  // namespace chexnet
