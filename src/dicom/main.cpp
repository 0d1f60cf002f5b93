// chexnet-dicom: DICOM radiographs to 8-bit gray PNG and a table, once, before training.
#include <gdcmTrace.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/resources.hpp"
#include "private_files.hpp"
#include "worker.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> in;
  std::string out, ids = "pseudonym", key_file, map_file;
  WorkerLimits limits;
  bool json = false;
};

std::string pseudonym(const std::string& key, const std::string& id) {
  const std::string digest = hmac_sha256(key, id);
  return "p" + hex_text(std::as_bytes(std::span(digest)).first(8));
}

// "058Y" -> 58, months and less -> years rounded down; empty when it is anything else. The few who
// are older than 89 could be known by their age: they are 90.
std::string years(const std::string& age) {
  const auto digits = std::min(age.find_first_not_of("0123456789"), age.size());
  if (digits == 0 || digits > 4) return {};
  int n = std::stoi(age.substr(0, digits));
  const std::string unit = age.substr(digits);
  if (unit == "M")
    n /= 12;
  else if (unit == "W")
    n /= 52;
  else if (unit == "D")
    n /= 365;
  else if (!unit.empty() && unit != "Y")
    return {};
  return std::to_string(std::min(n, 90));
}

// The attribute when it is one of DICOM's codes (PS3.3 C.7.1.1, C.8.7.1.1.2): a broken file may
// hold anything there, also a name.
std::string code(const std::string& text, std::initializer_list<const char*> known) {
  return std::ranges::find(known, text) == known.end() ? "" : text;
}
std::string sex_code(const std::string& text) { return code(text, {"M", "F", "O"}); }
std::string view_code(const std::string& text) {
  return code(text, {"AP", "PA", "LL", "RL", "LLD", "RLD", "LLO", "RLO"});
}

// A name for files: anything but letters, digits, '-', '_' and '.' becomes '_'.
std::string file_safe(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  if (text.empty() || text[0] == '.') text.insert(0, "_");
  return text;
}

int run(const Options& options) {
  std::vector<std::string> files;
  for (const auto& in : options.in) {
    if (fs::is_directory(in)) {
      for (const auto& entry : fs::recursive_directory_iterator(in))
        if (entry.is_regular_file()) files.push_back(entry.path().string());
    } else {
      files.push_back(in);
    }
  }
  std::ranges::sort(files);
  const fs::path out = options.out;
  if (fs::exists(out / "images.csv"))
    throw CheckpointError("[dicom] " + options.out +
                          " holds a converted set. Hint: choose another --out");
  const bool hide = options.ids == "pseudonym";
  const fs::path key_path =
      options.key_file.empty() ? beside(out, ".key") : fs::path(options.key_file);
  const fs::path map_path =
      options.map_file.empty() ? beside(out, ".map.csv") : fs::path(options.map_file);
  if (hide) {
    require_outside(key_path, out);
    require_outside(map_path, out);
    if (fs::exists(fs::symlink_status(map_path)))
      throw CheckpointError("[dicom] " + map_path.string() +
                            ": is there already, and may lead back to the patients of another "
                            "set. Hint: move it away or choose another --map-file");
  }
  fs::create_directories(out / "images");
  const std::string key = hide ? read_or_make_key(key_path) : "";

  std::map<std::string, int> of_patient;  // images so far
  std::map<std::string, std::size_t> skipped, rules;
  Json damaged = Json::array(), conversions = Json::array();
  std::string table = "image,patient,view,age,sex\n",
              secret = "image,pseudonym,patient_id,study_uid,instance_uid,file\n";
  std::size_t converted = 0;
  Progress progress(true);
  for (std::size_t i = 0; i < files.size(); ++i) {
    progress.show("converting: " + std::to_string(i) + " of " + std::to_string(files.size()));
    Converted file;
    try {
      file = convert_in_worker(files[i], options.limits);
      if (file.skip != Skip::kNone) {
        ++skipped[skip_name(file.skip)];
        continue;
      }
    } catch (const DataError& e) {
      // A path may hold a name; with pseudonyms it stays out of what is passed on.
      const std::string number = "damaged file " + std::to_string(i + 1);
      damaged.push_back(hide ? number + " (see the map file)" : e.what());
      secret += number + ",,,,," + csv_field(files[i]) + "\n";
      log_warning(e.what());
      continue;
    }
    const Radiograph& picture = file.picture;
    // Without a patient id each image is a patient of its own.
    const std::string id = picture.patient.empty() ? picture.instance : picture.patient;
    const std::string patient = hide ? pseudonym(key, id) : file_safe(id);
    char number[16];
    std::snprintf(number, sizeof number, "_%03d.png", of_patient[patient]++);
    const std::string name = patient + number;
    write_atomically(out / "images" / name,
                     {reinterpret_cast<const char*>(file.png.data()), file.png.size()});
    table += csv_field(name) + "," + csv_field(patient) + "," + view_code(picture.view) + "," +
             years(picture.age) + "," + sex_code(picture.sex) + "\n";
    secret += csv_field(name) + "," + csv_field(patient) + "," + csv_field(picture.patient) + "," +
              csv_field(picture.study) + "," + csv_field(picture.instance) + "," +
              csv_field(files[i]) + "\n";
    conversions.push_back({{"image", name}, {"rule", picture.rule}});
    ++converted;
  }
  progress.clear();
  if (hide) write_atomically(map_path, secret, 0600);
  const Json record = {{"images", converted},
                       {"skipped", skipped},
                       {"damaged", damaged},
                       {"ids", options.ids},
                       {"rules", conversions}};
  write_atomically(out / "conversion.json", record.dump(1) + "\n");
  write_atomically(out / "images.csv", table);  // last: with it the set is whole
  std::size_t passed = 0;
  std::string reasons;
  for (const auto& [name, count] : skipped) {
    passed += count;
    reasons += (reasons.empty() ? " (" : ", ") + name + " " + std::to_string(count);
  }
  log_info("dicom: " + std::to_string(converted) + " images in " + options.out + ", " +
           std::to_string(passed) + " passed over" + (reasons.empty() ? "" : reasons + ")") + ", " +
           std::to_string(damaged.size()) + " damaged" +
           (hide ? "; ids are pseudonyms, the private map is " + map_path.string() : ""));
  if (options.json)
    std::cout << Json{{"images", converted},
                      {"skipped", skipped},
                      {"damaged", damaged.size()},
                      {"out", options.out}}
                     .dump()
              << std::endl;
  return converted > 0 ? 0 : static_cast<int>(ExitCode::kData);
}

}  // namespace
}  // namespace chexnet

int main(int argc, char** argv) {
  using namespace chexnet;
  CLI::App app{
      "Converts DICOM chest radiographs to 8-bit gray PNG with a table for "
      "data.manifest.format csv. For research use, not a medical device."};
  app.name("chexnet-dicom");
  Options options;
  app.add_option("in", options.in, "DICOM files, or folders of them")->required();
  app.add_option("--out", options.out, "folder to write")
      ->required()
      ->check(CLI::Validator(object_store_problem, "", "in a file system"));
  app.add_option("--ids", options.ids, "pseudonym (keyed, with a private map file) or keep")
      ->check(CLI::IsMember({"pseudonym", "keep"}))
      ->capture_default_str();
  app.add_option("--key-file", options.key_file,
                 "key of the pseudonyms (OUT.key); made when it is not there");
  app.add_option("--map-file", options.map_file, "private map of pseudonyms (OUT.map.csv)");
  app.add_option("--max-pixels", options.limits.max_pixels, "largest width x height")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--max-seconds", options.limits.seconds, "longest time for a file")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_flag("--json", options.json, "one JSON object on stdout (docs/json.md)");
  gdcm::Trace::SetWarning(false);
  gdcm::Trace::SetError(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  try {
    return run(options);
  } catch (const Error& e) {
    log_error(e.what());
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    log_error(std::string("[dicom] ") + e.what());
    return static_cast<int>(ExitCode::kData);
  }
}
