#include "dicom_results.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <span>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/plugin.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

std::string converter() { return program_folder() + "/chexnet-dicom"; }

// Shorter than a capture of this image is called, whose finding follows
// (heat_map_options.cpp), so that no two files have one name.
constexpr size_t kMostOfAName = 80;

// Paths are bytes, and JSON is UTF-8.
std::string digits_of(const fs::path& path) {
  return hex_text(std::as_bytes(std::span(path.native())));
}

// Two files of one name in two folders stay two; the name itself is kept so
// that people find their way back.
std::string report_name(size_t row, const fs::path& image) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%06zu_", row + 1);
  return text.data() + image.stem().string().substr(0, kMostOfAName) + ".dcm";
}

// The basis of a report's answers; "" without the model's own rules.
std::string rule_text(const ImageScoreRows& rows) {
  const Json decisions = rows.decisions_json();
  if (decisions.is_null()) return "";
  std::string text =
      "thresholds by the rule " + decisions.at("rule").get<std::string>() +
      ", calibration by " + decisions.at("calibration").get<std::string>() +
      ", both chosen on validation";
  for (const auto& limit : rows.limits_of_thresholds()) text += "; " + limit;
  return text;
}

}  // namespace

void add_dicom_result_options(CLI::App& command, std::string& folder) {
  command
      .add_option("--dicom", folder,
                  "of DICOM files: write a structured report of each to this "
                  "folder, and with --heatmaps its maps as secondary captures")
      ->check(in_file_system());
}

void check_dicom_results(const std::string& folder) {
  if (!folder.empty() && !fs::exists(converter()))
    throw ConfigError(
        "[dicom] there is no chexnet-dicom beside this program ({}). Hint: "
        "scripts/setup and scripts/build release make it",
        program_folder());
}

DicomResults::DicomResults(fs::path folder, const ImageScoreRows& texts,
                           fs::path pictures)
    : folder_(std::move(folder)),
      texts_(texts),
      pictures_(std::move(pictures)),
      images_(Json::array()) {}

// Heat maps are known by name here and drawn later, when all scores are in.
Json DicomResults::captures_of(const ImageScore& score,
                               const Json& findings) const {
  Json captures = Json::array();
  for (const auto& [finding, file] : score.heat_maps) {
    const auto scored = std::ranges::find_if(
        findings, [&](const Json& f) { return f.at("name") == finding; });
    captures.push_back(
        {{"finding", finding},
         {"probability", scored->at("probability")},
         {"picture", digits_of(fs::absolute(pictures_ / file))},
         {"sc", digits_of(fs::absolute(folder_) /
                          (fs::path(file).stem().string() + ".dcm"))}});
  }
  return captures;
}

void DicomResults::take(size_t row, const InputImage& image,
                        const ImageScore& score) {
  if (!score.error.empty() || image.dicom_file.empty()) return;
  const Json findings = texts_.findings_json(score);
  images_.push_back({{"file", digits_of(fs::absolute(image.dicom_file))},
                     {"instance", image.dicom_instance},
                     {"findings", findings},
                     {"note", score.note},
                     {"sr", digits_of(fs::absolute(folder_) /
                                      report_name(row, image.dicom_file))},
                     {"captures", captures_of(score, findings)}});
}

// The request names paths and patients' files, so it lies in a private folder,
// and is removed with it.
bool DicomResults::write(const ReportedModel& model) const {
  if (images_.empty()) {
    log_warning(
        "[dicom] none of the scored images is a DICOM file: no report and no "
        "capture was written");
    return true;
  }
  const TemporaryFolder folder("dicom", "chexnet-results");
  const fs::path list = folder.path() / "request.json";
  const Json request = {{"request", sha256_hex(list.string() + utc_time() +
                                               std::to_string(::getpid()))},
                        {"model",
                         {{"network", model.network},
                          {"version", CHEXNET_VERSION},
                          {"sha256", model.sha256},
                          {"rule", rule_text(texts_)}}},
                        {"images", images_}};
  write_atomically(list, json_text(request), 0600);
  return say_end(output_of({converter(), "--results", list.string()}));
}

bool DicomResults::say_end(const ChildOutput& ended) const {
  if (ended.exit_code == 128 + SIGINT || ended.exit_code == 128 + SIGTERM) {
    log_info("stopped on request: not all DICOM files were written");
    return false;
  }
  const Json counts = Json::parse(ended.output, nullptr, false);
  if (ended.exit_code != 0 || !counts.is_object())
    throw CheckpointError(
        "[dicom] chexnet-dicom ended with {}. Hint: its message, if any, is "
        "above",
        ended.exit_code);
  const auto count = [&](const char* key, const char* what) {
    return counted(counts.value(key, int64_t{0}), what);
  };
  log_info(
      count("reports", "DICOM report") +
      (pictures_.empty() ? "" : ", " + count("captures", "DICOM capture")) +
      " in " + folder_.string());
  if (const auto failed = counts.value("failed", int64_t{0}); failed > 0)
    log_warning("[dicom] nothing was written of " + counted(failed, "file") +
                ", as said above");
  return true;
}

}  // namespace chexnet
