// chexnet-dicom gets some hundred files at a time (a command line is limited)
// and writes the result of each into a table.
#include "chexnet/train/run/dicom_inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/plugin.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFilesAtOnce = 200;

struct Outcome {
  std::string picture, problem;  // one of them is empty
  std::string instance, note;
};
using Outcomes = std::map<std::string, Outcome>;  // by file

bool ends_like(const std::string& path,
               std::initializer_list<const char*> endings) {
  const std::string ending = lowered(fs::path(path).extension().string());
  return std::ranges::find(endings, ending) != endings.end();
}

void read_outcomes(const fs::path& table, const fs::path& set, Outcomes& all) {
  const std::string text = read_text(table);
  CsvReader csv(text, table.string());
  std::vector<std::string_view> fields;
  csv.next(fields);  // the heading
  while (csv.next(fields)) {
    Outcome outcome;
    if (!fields[1].empty()) outcome.picture = set / "images" / fields[1];
    outcome.problem = fields[2];
    outcome.instance = fields[3];
    outcome.note = fields[4];
    all[std::string(fields[0])] = std::move(outcome);
  }
}

void convert_some(const std::string& program, TakenDicom taken,
                  const std::vector<std::string>& files, const fs::path& set,
                  Outcomes& all) {
  const std::string table = set.string() + ".csv";
  std::vector<std::string> command = {program, "--out", set.string(),
                                      "--ids", "keep",  "--outcomes-file",
                                      table};
  if (taken == TakenDicom::kAny) command.emplace_back("--any-dicom");
  command.emplace_back("--");
  command.insert(command.end(), files.begin(), files.end());
  const ChildOutput ended = output_of(command);
  if (fs::exists(table)) return read_outcomes(table, set, all);
  for (const auto& file : files)
    all[file].problem = "[dicom] " + file + ": chexnet-dicom ended with " +
                        std::to_string(ended.exit_code);
}

void put_in_place(const Outcomes& outcomes, InputImages& input) {
  std::vector<FoundImage> kept;
  auto next = input.found.begin();
  for (InputImage& image : input.images) {
    if (!image.problem.empty()) continue;
    FoundImage& found = *next++;
    Container& container = input.containers[found.location.container];
    const auto outcome = container.kind == ContainerKind::kFile
                             ? outcomes.find(container.path)
                             : outcomes.end();
    if (outcome != outcomes.end()) {
      image.problem = outcome->second.problem;
      image.dicom_file = container.path;
      image.dicom_instance = outcome->second.instance;
      image.dicom_note = outcome->second.note;
      container = {.path = outcome->second.picture};
    }
    if (image.problem.empty()) kept.push_back(std::move(found));
  }
  input.found = std::move(kept);
}

}  // namespace

bool is_dicom_file(const std::string& path) {
  if (ends_like(path, {".dcm", ".dicom"})) return true;
  if (ends_like(path, {".png", ".jpg", ".jpeg"})) return false;
  char head[132] = {};
  return fs::is_regular_file(path) &&
         std::ifstream(path, std::ios::binary).read(head, sizeof head) &&
         std::string_view(head + 128, 4) == "DICM";
}

std::unique_ptr<TemporaryFolder> convert_dicom(InputImages& input,
                                               TakenDicom taken,
                                               const Tick& tick) {
  const std::string program = program_folder() + "/chexnet-dicom";
  if (!fs::exists(program)) return nullptr;
  std::vector<std::string> files;
  for (const auto& image : input.found) {
    const Container& container = input.containers[image.location.container];
    const bool is_local =
        container.kind == ContainerKind::kFile && !is_s3(container.path);
    if (is_local && is_dicom_file(container.path))
      files.push_back(container.path);
  }
  if (files.empty()) return nullptr;
  auto folder = std::make_unique<TemporaryFolder>("predict", "chexnet-predict");
  Outcomes outcomes;
  for (size_t at = 0; at < files.size(); at += kFilesAtOnce) {
    const auto end = std::min(files.size(), at + kFilesAtOnce);
    const std::vector<std::string> some(
        files.begin() + static_cast<ptrdiff_t>(at),
        files.begin() + static_cast<ptrdiff_t>(end));
    convert_some(program, taken, some, folder->path() / std::to_string(at),
                 outcomes);
    tick();
  }
  put_in_place(outcomes, input);
  return folder;
}

}  // namespace chexnet
