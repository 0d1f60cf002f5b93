#include "chexnet/report/help_bundle.hpp"

#include <cstdlib>
#include <regex>

#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.size() < 2) return;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string without_ids(const std::string& text, const Secrets& secrets) {
  std::string out = text;
  replace_all(out, secrets.home, "~");
  replace_all(out, secrets.host, "HOST");
  replace_all(out, secrets.user, "USER");
  // NIH's file names carry the patient; so may others': every image file is left out.
  static const std::regex kNihId(R"(\b\d{8}(_\d{3})?\b)");
  static const std::regex kImage(R"([^\s'"/:,]+\.(png|jpe?g|dcm|dicom)\b)", std::regex::icase);
  out = std::regex_replace(out, kImage, "IMAGE");
  return std::regex_replace(out, kNihId, "ID");
}

fs::path collect_for_help(const fs::path& run_folder, const std::string& doctor_text) {
  if (!fs::exists(run_folder / "config.yaml"))
    throw CheckpointError("[doctor] " + run_folder.string() +
                          ": holds no run. Hint: --collect runs/NAME");
  const fs::path folder = fs::absolute(run_folder).lexically_normal();
  const std::string name =
      (folder.filename().empty() ? folder.parent_path() : folder).filename().string() + "-help";
  std::string place = (fs::temp_directory_path() / "chexnet-help-XXXXXX").string();
  if (mkdtemp(place.data()) == nullptr)
    throw CheckpointError("[doctor] " + place + ": cannot be made. Hint: TMPDIR names a folder");
  const fs::path inside = fs::path(place) / name;
  fs::create_directories(inside / "log");
  const Secrets secrets{variable("HOME"), variable("USER"), host_name()};
  const auto keep = [&](const fs::path& file, const fs::path& as) {
    write_atomically(inside / as, without_ids(read_text(file), secrets));
  };
  write_atomically(inside / "doctor.txt", without_ids(doctor_text, secrets));
  keep(folder / "config.yaml", "config.yaml");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file == "metrics.jsonl" || file == "requeues" ||
        (file.starts_with("postmortem") && file.ends_with(".json")))
      keep(entry.path(), file);
  }
  for (const auto& entry : fs::directory_iterator(folder / "log"))
    keep(entry.path(), fs::path("log") / entry.path().filename());
  const fs::path archive = fs::current_path() / (name + ".tar.gz");
  const auto packed = output_of({"tar", "-C", place, "-czf", archive.string(), name}, 60);
  fs::remove_all(place);
  if (packed.exit_code != 0)
    throw CheckpointError("[doctor] " + archive.string() +
                          ": tar failed, see above. Hint: is this folder writable?");
  return archive;
}

}  // namespace chexnet
