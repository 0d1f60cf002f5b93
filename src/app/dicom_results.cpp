#include "dicom_results.hpp"

#include <array>
#include <cstdio>

#include "chexnet/app/run_options.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/plugin.hpp"
#include "chexnet/run/dicom_inputs.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

std::string converter() { return program_folder() + "/chexnet-dicom"; }

void require_empty(const std::string& folder) {
  std::error_code error;
  if (!folder.empty() && fs::exists(folder, error) &&
      !fs::is_empty(folder, error))
    throw CheckpointError("[dicom] " + folder +
                          ": is not an empty folder. Hint: name a new one");
}

std::string numbered(size_t number, const fs::path& image) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%06zu_", number);
  return text.data() + image.stem().string() + ".dcm";
}

fs::path made(const std::string& folder) {
  fs::create_directories(folder);
  return fs::absolute(folder);
}

}  // namespace

void add_dicom_result_options(CLI::App& command, DicomResultOptions& options) {
  command
      .add_option("--dicom-sr", options.reports,
                  "of DICOM files: write a structured report of each to this "
                  "folder")
      ->check(in_file_system());
  command
      .add_option("--dicom-sc", options.captures,
                  "of DICOM files: write heat maps as secondary captures to "
                  "this folder")
      ->check(in_file_system());
}

void check_dicom_result_options(const DicomResultOptions& options) {
  if (!options.wanted()) return;
  require_empty(options.reports);
  require_empty(options.captures);
  if (!fs::exists(converter()))
    throw ConfigError(
        "[dicom] there is no chexnet-dicom beside this program, so it was "
        "built "
        "without GDCM. Hint: scripts/setup installs it, then build again");
}

DicomResults::DicomResults(const DicomResultOptions& options,
                           const ImageScoreRows& texts)
    : options_(options), texts_(texts), images_(Json::array()) {}

void DicomResults::take(const ImageScore& score) {
  if (!score.error.empty() || !is_dicom_file(score.image)) return;
  Json captures = Json::array();
  if (!options_.captures.empty())
    for (const auto& [finding, file] : score.heat_maps)
      captures.push_back({{"finding", finding}, {"picture", file}});
  images_.push_back({{"file", fs::absolute(score.image).string()},
                     {"findings", texts_.findings_json(score)},
                     {"captures", captures}});
}

void DicomResults::write(const ReportedModel& model,
                         const fs::path& pictures) const {
  if (images_.empty()) {
    log_warning(
        "[dicom] none of the scored images is a DICOM file: no report and no "
        "capture was written");
    return;
  }
  Json request = {{"model",
                   {{"network", model.network},
                    {"version", CHEXNET_VERSION},
                    {"sha256", model.sha256}}},
                  {"images", images_}};
  const TemporaryFolder folder("dicom", "chexnet-results");
  const fs::path list = folder.path() / "request.json";
  size_t number = 0, captures = 0;
  for (auto& image : request["images"]) {
    const fs::path name =
        numbered(++number, image.at("file").get<std::string>());
    image["sr"] = nullptr;
    if (!options_.reports.empty())
      image["sr"] = (made(options_.reports) / name).string();
    for (auto& capture : image["captures"]) {
      const fs::path picture = capture.at("picture").get<std::string>();
      capture["sc"] =
          (made(options_.captures) / picture.stem()).string() + ".dcm";
      capture["picture"] = (fs::absolute(pictures) / picture).string();
      for (const auto& finding : image.at("findings"))
        if (finding.at("name") == capture.at("finding"))
          capture["probability"] = finding.at("probability");
      ++captures;
    }
  }
  write_atomically(list, json_text(request), 0600);
  const ChildOutput ended =
      output_of({converter(), "--results", list.string()});
  if (ended.exit_code != 0)
    throw CheckpointError("[dicom] chexnet-dicom ended with " +
                          std::to_string(ended.exit_code) +
                          ". Hint: its message is above");
  log_info(counted(static_cast<int64_t>(number), "DICOM file") + ": " +
           (options_.reports.empty() ? "" : "reports in " + options_.reports) +
           (options_.reports.empty() || options_.captures.empty() ? "" : ", ") +
           (options_.captures.empty()
                ? ""
                : counted(static_cast<int64_t>(captures), "heat map") + " in " +
                      options_.captures));
}

}  // namespace chexnet
