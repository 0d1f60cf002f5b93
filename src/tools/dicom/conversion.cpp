// Nothing of the set may lead back to a patient: with pseudonyms its order,
// numbers and times follow a keyed hash of the file's path and not its name,
// and a number stands for what could not be read. Names and paths go to the
// private map alone.
#include "conversion.hpp"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/path_inside.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/private_key.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "input_files.hpp"
#include "patient_names.hpp"
#include "private_files.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// "058Y" -> 58, months and less -> years rounded down; empty when it is
// anything else. The few who are older than 89 could be known by their age:
// they are 90.
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

// The attribute when it is one of DICOM's codes (PS3.3 C.7.1.1, C.8.7.1.1.2): a
// broken file may hold anything there, also a name. Some devices write it in
// small letters.
std::string code(const std::string& text,
                 std::initializer_list<const char*> known) {
  const auto is_same = [&](const char* other) {
    return lowered(other) == lowered(text);
  };
  const auto* const found = std::ranges::find_if(known, is_same);
  return found == known.end() ? "" : *found;
}
std::string sex_code(const std::string& text) {
  return code(text, {"M", "F", "O"});
}
std::string view_code(const std::string& text) {
  return code(text, {"AP", "PA", "LL", "RL", "LLD", "RLD", "LLO", "RLO"});
}

// A converted picture in the set's files.
struct Row {
  std::string image, line, rule;
  bool noted = false;  // that it may be no chest X-ray
};

constexpr const char* kMayBeNone = "may be no chest X-ray";

// What was skipped, and how it is reported.
struct Damaged {
  std::string what;  // "damaged file 3"; says nothing of its name
  std::string path, message;
};

// So that nothing of the set (order, numbers, times of files) follows the order
// of names.
void order_by_key(std::vector<InputFile>& files, const std::string& key) {
  const auto place = [&](const InputFile& file) {
    return hmac_sha256(key, file.below);
  };
  std::vector<std::pair<std::string, InputFile>> keyed;
  for (auto& file : files) keyed.emplace_back(place(file), std::move(file));
  std::ranges::stable_sort(
      keyed, {}, [](const auto& k) -> const std::string& { return k.first; });
  files.clear();
  for (auto& [unused, file] : keyed) files.push_back(std::move(file));
}

// An output must not exist: it may be the only way back to the patients of
// another set, or one of the pictures.
void require_new(const fs::path& file, const std::string& option) {
  if (fs::exists(fs::symlink_status(file)))
    throw CheckpointError(
        "[dicom] {}: is there already, and may lead back to the patients of "
        "another set. Hint: move it away or choose another {}",
        file.string(), option);
}

// Where the two private files are.
struct PrivatePaths {
  fs::path key, map;
};

PrivatePaths private_paths(const ConversionOptions& options) {
  const fs::path out = options.out;
  PrivatePaths paths;
  paths.key = options.key_file.empty() ? beside(out, ".key")
                                       : fs::path(options.key_file);
  paths.map = options.map_file.empty() ? beside(out, ".map.csv")
                                       : fs::path(options.map_file);
  return paths;
}

// CheckpointError: a private file inside the set, two in one, a map or outcomes
// that are there already, or the set around its originals.
void check_places(const ConversionOptions& options, const PrivatePaths& paths) {
  std::map<fs::path, std::string> taken;  // its option
  const auto take = [&](const fs::path& file, const std::string& option) {
    require_outside(file, options.out);
    const auto place = fs::weakly_canonical(fs::absolute(file));
    const auto [other, is_new] = taken.emplace(place, option);
    if (!is_new)
      throw CheckpointError(
          "[dicom] {}: {} and {} would be one file. Hint: name two",
          file.string(), option, other->second);
  };
  if (options.hides_ids()) {
    take(paths.key, "--key-file");
    take(paths.map, "--map-file");
    require_new(paths.map, "--map-file");
  }
  if (!options.outcomes_file.empty()) {
    take(options.outcomes_file, "--outcomes-file");
    require_new(options.outcomes_file, "--outcomes-file");
  }
  for (const auto& in : options.in)
    if (is_inside(in, options.out))
      throw CheckpointError(
          "[dicom] {}: the set, which is passed on, would hold the originals "
          "of {}. Hint: choose another --out",
          options.out, in);
}

void make_output_folder(const fs::path& out) {
  std::error_code error;
  fs::create_directories(out / "images", error);
  if (error)
    throw CheckpointError(
        "[dicom] {}: the set's folder cannot be made: {}. Hint: --out names a "
        "folder; is it a file, or in one that you may not write?",
        out.string(), error.message());
}

// Where nothing was converted: what is left would be in the way of the next
// try. Folders that hold something stay.
void remove_output_folder(const fs::path& out) {
  std::error_code ignored;
  fs::remove(out / "images", ignored);
  fs::remove(out, ignored);
}

// One conversion from its first file to its table.
class Conversion {
 public:
  Conversion(const ConversionOptions& options, const std::string& key)
      : options_(options), out_(options.out), names_(key) {}

  void note_unreadable(const InputFiles& input) {
    if (input.broken_links > 0) skipped_["broken_link"] = input.broken_links;
    if (input.no_files > 0) skipped_["no_file"] = input.no_files;
    const auto note = [&](const char* kind, const std::string& path,
                          const char* what) {
      damaged_.push_back({kind + std::to_string(damaged_.size() + 1), path,
                          "[dicom] " + path + what});
      log_warning(damaged_.back().message);
    };
    for (const auto& folder : input.unreadable)
      note("unreadable folder ", folder,
           ": this folder cannot be read. Hint: check its permissions");
    for (const auto& pipe : input.pipes)
      note("no file ", pipe,
           ": is a pipe, a device or a socket. Hint: name files and folders");
  }

  // `number`: counted from 1, in the order of conversion.
  void convert_file(const std::string& path, size_t number) {
    Converted file;
    try {
      file = convert_in_worker(path, options_.limits);
    } catch (const DataError& e) {
      damaged_.push_back(
          {"damaged file " + std::to_string(number), path, e.what()});
      log_warning(e.what());
      note_outcome(path, "", e.what());
      return;
    }
    if (file.skip == Skip::kNone) return keep(path, file);
    const SkipWords words = skip_words(file.skip);
    ++skipped_[words.name];
    if (first_skipped_.empty()) first_skipped_ = path + " " + words.text;
    const bool may_be_taken =
        file.skip == Skip::kNotXray || file.skip == Skip::kOtherBodyPart;
    const std::string& note = file.picture.note;
    note_outcome(
        path, "",
        "[dicom] " + path + ": not converted: it " + words.text +
            (note.empty() ? "" : " (" + note + ")") +
            (may_be_taken ? ". Hint: --any-dicom takes it all the same" : ""));
  }

  void write_outcomes(const fs::path& file) const {
    write_atomically(file, "file,image,problem,instance,note\n" + outcomes_,
                     0600, "--outcomes-file");
  }

  void write_map(const fs::path& map) {
    for (const auto& one : damaged_)
      secret_ += one.what + ",,,,," + csv_field(one.path) + "\n";
    write_atomically(map, secret_, 0600, "--map-file");
  }

  void write_set() {
    std::ranges::sort(rows_, {}, &Row::image);
    std::string table = "image,patient,view,age,sex,note\n";
    Json rules = Json::array(), not_read = Json::array();
    for (const Row& row : rows_) {
      table += row.line;
      rules.push_back({{"image", row.image}, {"rule", row.rule}});
    }
    // A path may hold a name; with pseudonyms it stays out of what is passed
    // on.
    for (const Damaged& one : damaged_)
      not_read.push_back(options_.hides_ids() ? one.what + " (see the map file)"
                                              : one.message);
    const Json record = {{"images", rows_.size()},
                         {"skipped", skipped_},
                         {"damaged", not_read},
                         {"ids", options_.ids},
                         {"rules", rules}};
    write_atomically(out_ / "conversion.json", json_text(record, 1) + "\n");
    write_atomically(out_ / "images.csv", table);
  }

  void report(const fs::path& map, bool filtered) const {
    size_t passed = 0;
    std::string reasons;
    for (const auto& [name, count] : skipped_) {
      passed += count;
      reasons +=
          (reasons.empty() ? " (" : ", ") + name + " " + std::to_string(count);
    }
    if (!reasons.empty()) reasons += ")";
    const auto noted = std::ranges::count(rows_, true, &Row::noted);
    const std::string notes =
        noted > 0 ? "; " + counted(noted, "image") +
                        " may be no chest X-ray: column note of images.csv, "
                        "the reasons in --outcomes-file"
                  : "";
    const std::string about_ids =
        options_.hides_ids() && images() > 0
            ? "; ids are pseudonyms, the private map is " + map.string()
            : "";
    // The program that requested the outcomes reports them itself.
    if (options_.outcomes_file.empty())
      log_info("dicom: " + counted(std::ssize(rows_), "image") + " in " +
               options_.out + ", " + std::to_string(passed) + " skipped" +
               reasons + ", " + std::to_string(damaged_.size()) +
               " damaged or not readable" + notes + about_ids);
    if (!options_.json) return;
    const Json summary = {{"images", rows_.size()},
                          {"skipped", skipped_},
                          {"damaged", damaged_.size()},
                          {"out", options_.out},
                          {"system_calls_filtered", filtered}};
    std::cout << json_text(summary) << std::endl;
  }

  void say_why_empty() const {
    log_error(
        "[dicom] " + options_.out + ": not written, as no file was converted" +
        (first_skipped_.empty() ? ""
                                : "; the first skipped: " + first_skipped_) +
        ". Hint: docs/dicom.md says what is converted");
  }

  size_t images() const { return rows_.size(); }

 private:
  void note_outcome(const std::string& path, const std::string& image,
                    const std::string& problem,
                    const std::string& instance = "",
                    const std::string& note = "") {
    outcomes_ += csv_field(path) + "," + csv_field(image) + "," +
                 csv_field(problem) + "," + csv_field(instance) + "," +
                 csv_field(note) + "\n";
  }

  void keep(const std::string& path, const Converted& file) {
    assert(!file.png.empty());
    const Radiograph& picture = file.picture;
    const std::string patient = names_.of(file);
    char number[16];
    std::snprintf(number, sizeof number, "_%03d.png", of_patient_[patient]++);
    const std::string name = patient + number;
    const std::string_view png(reinterpret_cast<const char*>(file.png.data()),
                               file.png.size());
    write_atomically(out_ / "images" / name, png);

    const std::string image_and_patient =
        csv_field(name) + "," + csv_field(patient);
    // The note itself may hold free text of the file, and so a name.
    const bool noted = !picture.note.empty();
    const std::string line = image_and_patient + "," + view_code(picture.view) +
                             "," + years(picture.age) + "," +
                             sex_code(picture.sex) + "," +
                             (noted ? kMayBeNone : "") + "\n";
    rows_.push_back({name, line, picture.rule, noted});
    note_outcome(path, name, "", picture.instance, picture.note);
    secret_ += image_and_patient + "," + csv_field(picture.patient) + "," +
               csv_field(picture.study) + "," + csv_field(picture.instance) +
               "," + csv_field(path) + "\n";
  }

  const ConversionOptions& options_;
  const fs::path out_;
  PatientNames names_;
  std::map<std::string, int> of_patient_;  // images so far
  std::map<std::string, size_t> skipped_;
  std::string first_skipped_;  // and why
  std::vector<Row> rows_;
  std::vector<Damaged> damaged_;
  std::string outcomes_;  // lines of the file
  std::string secret_ =
      "image,pseudonym,patient_id,study_uid,instance_uid,file\n";
};

}  // namespace

int convert(const ConversionOptions& options) {
  InputFiles input = find_input_files(options.in);
  const fs::path out = options.out;
  if (fs::exists(out / "images.csv"))
    throw CheckpointError(
        "[dicom] {} holds a converted set. Hint: choose another --out",
        options.out);
  const PrivatePaths paths = private_paths(options);
  check_places(options, paths);
  const bool was_there = fs::exists(out);
  make_output_folder(out);
  const std::string key =
      options.hides_ids() ? read_or_make_key(paths.key, {"dicom", "--key-file"})
                          : "";
  if (options.hides_ids()) order_by_key(input.files, key);

  const bool filtered = workers_are_filtered();
  Conversion conversion(options, key);
  conversion.note_unreadable(input);
  Progress progress(true);
  const size_t count = input.files.size();
  for (size_t i = 0; i < count; ++i) {
    progress.show("converting: " + std::to_string(i) + " of " +
                  std::to_string(count));
    conversion.convert_file(input.files[i].path, i + 1);
  }
  progress.clear();
  if (!options.outcomes_file.empty())
    conversion.write_outcomes(options.outcomes_file);
  const bool is_empty = conversion.images() == 0;
  if (is_empty && !was_there) remove_output_folder(out);
  if (!is_empty && options.hides_ids()) conversion.write_map(paths.map);
  if (!is_empty) conversion.write_set();
  conversion.report(paths.map, filtered);
  if (is_empty && options.outcomes_file.empty()) conversion.say_why_empty();
  return is_empty ? static_cast<int>(ExitCode::kData) : 0;
}

}  // namespace chexnet
