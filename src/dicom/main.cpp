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
#include "chexnet/core/json_text.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "input_files.hpp"
#include "patient_names.hpp"
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

// A converted picture in the set's files.
struct Row {
  std::string image, line, rule;
};

// What was skipped, and how it is reported.
struct Damaged {
  std::string what;  // "damaged file 3"; says nothing of its name
  std::string path, message;
};

// So that nothing of the set (order, numbers, times of files) follows the order of names.
void order_by_key(std::vector<InputFile>& files, const std::string& key) {
  const auto place = [&](const InputFile& file) { return hmac_sha256(key, file.below); };
  std::vector<std::pair<std::string, InputFile>> keyed;
  for (auto& file : files) keyed.emplace_back(place(file), std::move(file));
  std::ranges::stable_sort(keyed, {}, [](const auto& k) -> const std::string& { return k.first; });
  files.clear();
  for (auto& [unused, file] : keyed) files.push_back(std::move(file));
}

void write_set(const fs::path& out, const std::string& ids, std::vector<Row>& rows,
               const std::map<std::string, std::size_t>& skipped,
               const std::vector<Damaged>& damaged) {
  std::ranges::sort(rows, {}, &Row::image);
  std::string table = "image,patient,view,age,sex\n";
  Json rules = Json::array(), not_read = Json::array();
  for (const Row& row : rows) {
    table += row.line;
    rules.push_back({{"image", row.image}, {"rule", row.rule}});
  }
  // A path may hold a name; with pseudonyms it stays out of what is passed on.
  for (const Damaged& one : damaged)
    not_read.push_back(ids == "pseudonym" ? one.what + " (see the map file)" : one.message);
  const Json record = {{"images", rows.size()},
                       {"skipped", skipped},
                       {"damaged", not_read},
                       {"ids", ids},
                       {"rules", rules}};
  write_atomically(out / "conversion.json", json_text(record, 1) + "\n");
  write_atomically(out / "images.csv", table);  // last: with it the set is whole
}

int run(const Options& options) {
  InputFiles input = find_input_files(options.in);
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

  if (hide) order_by_key(input.files, key);
  const auto& files = input.files;
  PatientNames names(key);
  std::map<std::string, int> of_patient;  // images so far
  std::map<std::string, std::size_t> skipped;
  if (input.broken_links > 0) skipped["broken_link"] = input.broken_links;
  std::vector<Row> rows;
  std::vector<Damaged> damaged;
  for (const auto& folder : input.unreadable)
    damaged.push_back(
        {"unreadable folder " + std::to_string(damaged.size() + 1), folder,
         "[dicom] " + folder + ": this folder cannot be read. Hint: check its permissions"});
  for (const auto& folder : damaged) log_warning(folder.message);
  std::string secret = "image,pseudonym,patient_id,study_uid,instance_uid,file\n";
  Progress progress(true);
  for (std::size_t i = 0; i < files.size(); ++i) {
    progress.show("converting: " + std::to_string(i) + " of " + std::to_string(files.size()));
    Converted file;
    try {
      file = convert_in_worker(files[i].path, options.limits);
      if (file.skip != Skip::kNone) {
        ++skipped[skip_name(file.skip)];
        continue;
      }
    } catch (const DataError& e) {
      damaged.push_back({"damaged file " + std::to_string(i + 1), files[i].path, e.what()});
      log_warning(e.what());
      continue;
    }
    const Radiograph& picture = file.picture;
    const std::string patient = names.of(file);
    char number[16];
    std::snprintf(number, sizeof number, "_%03d.png", of_patient[patient]++);
    const std::string name = patient + number;
    write_atomically(out / "images" / name,
                     {reinterpret_cast<const char*>(file.png.data()), file.png.size()});
    rows.push_back({name,
                    csv_field(name) + "," + csv_field(patient) + "," + view_code(picture.view) +
                        "," + years(picture.age) + "," + sex_code(picture.sex) + "\n",
                    picture.rule});
    secret += csv_field(name) + "," + csv_field(patient) + "," + csv_field(picture.patient) + "," +
              csv_field(picture.study) + "," + csv_field(picture.instance) + "," +
              csv_field(files[i].path) + "\n";
  }
  progress.clear();
  for (const auto& one : damaged) secret += one.what + ",,,,," + csv_field(one.path) + "\n";
  if (hide) write_atomically(map_path, secret, 0600);
  write_set(out, options.ids, rows, skipped, damaged);
  const std::size_t converted = rows.size();
  std::size_t passed = 0;
  std::string reasons;
  for (const auto& [name, count] : skipped) {
    passed += count;
    reasons += (reasons.empty() ? " (" : ", ") + name + " " + std::to_string(count);
  }
  log_info("dicom: " + std::to_string(converted) + " images in " + options.out + ", " +
           std::to_string(passed) + " skipped" + (reasons.empty() ? "" : reasons + ")") + ", " +
           std::to_string(damaged.size()) + " damaged or not readable" +
           (hide ? "; ids are pseudonyms, the private map is " + map_path.string() : ""));
  if (options.json)
    std::cout << json_text(Json{{"images", converted},
                                {"skipped", skipped},
                                {"damaged", damaged.size()},
                                {"out", options.out}})
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
                 "key of the pseudonyms (OUT.key); made when it does not exist");
  app.add_option("--map-file", options.map_file, "private map of pseudonyms (OUT.map.csv)");
  app.add_option("--max-pixels", options.limits.max_pixels, "largest width x height")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--max-seconds", options.limits.seconds, "longest time per file")
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
