#include "chexnet/report/help_bundle.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_set>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/redaction.hpp"
#include "chexnet/report/run_summary.hpp"
#include "foreign_folder.hpp"
#include "help_config.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

// Two passes over the same records. The first gathers names, because each file
// names some that the others hold without saying what they are: a log's
// sentence about "node17" is known to name a host from the start line of
// metrics.jsonl. Nothing is written before.
//
//   config, metrics, post-mortems, log, split.csv  ->  names_of  ->  Redaction
//   config, metrics, post-mortems, log  ->  text_for_help(Redaction)  ->  tar
//
// What goes into the archive is a list of files that may (records_of), so a
// kind of file that is added to run folders later is left out until somebody
// adds it here.

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(path)};
  for (std::string part; std::getline(stream, part, '/');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

// A part of an image's path, its stem, and the long numbers in it.
void hide_part(const std::string& part, Redaction& redaction) {
  redaction.hide_name(part, "IMAGE");
  redaction.hide_name(part.substr(0, part.rfind('.')), "IMAGE");
  for (size_t at = 0; at < part.size(); ++at) {
    const auto end =
        std::min(part.find_first_not_of("0123456789", at), part.size());
    if (end - at >= 6) redaction.hide(part.substr(at, end - at), "ID");
    at = end;
  }
}

// Patients, images and their folders.
void hide_split(const fs::path& file, Redaction& redaction) {
  if (!fs::exists(file)) return;
  const std::string text = read_text(file);
  CsvReader csv(text, file.string());
  std::vector<std::string_view> fields;
  csv.next(fields);
  std::unordered_set<std::string> parts;
  while (csv.next(fields)) {
    if (fields.size() < 2) continue;
    redaction.hide_name(fields[1], "PATIENT");
    redaction.hide(fields[0], "IMAGE");
    for (auto& part : parts_of(fields[0])) parts.insert(std::move(part));
  }
  for (const auto& part : parts) hide_part(part, redaction);
}

void hide_user(uid_t id, Redaction& redaction) {
  const passwd* entry = ::getpwuid(id);
  if (entry == nullptr || id == 0) return;
  redaction.hide(entry->pw_name, "USER");
  const std::string full_name = entry->pw_gecos;
  redaction.hide(full_name.substr(0, full_name.find(',')), "USER");
  if (std::string_view(entry->pw_dir).size() > 1)
    redaction.hide_path(entry->pw_dir, "HOME");
}

// The folder's absolute path as it was called and as links resolve it; whose
// home it is in.
void hide_folder(const fs::path& folder, Redaction& redaction) {
  for (const fs::path& path : {folder, fs::canonical(folder)}) {
    redaction.hide_path(path.string(), "RUN");
    redaction.hide_path(path.parent_path().string(), "PATH");
    redaction.hide(path.filename().string(), "RUN");
    const auto parts = parts_of(path.string());
    if (parts.size() > 1 && parts[0] == "home")
      redaction.hide(parts[1], "USER");
  }
}

void add_hosts(const nlohmann::json& json, std::set<std::string>& hosts) {
  if (json.is_object() && json.contains("host") && json["host"].is_string())
    hosts.insert(json["host"]);
  if (json.is_structured())
    for (const auto& inner : json) add_hosts(inner, hosts);
}

// Hosts as the tables of a log name them: a head "rank  host  …", rows until an
// empty line.
void add_hosts_of_log(const std::string& text, std::set<std::string>& hosts) {
  std::istringstream stream(text);
  bool in_table = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.find("rank  host") != std::string::npos) {
      in_table = true;
      continue;
    }
    std::istringstream row(line);
    int rank = 0;
    std::string host;
    in_table = in_table && row >> rank >> host;
    if (in_table) hosts.insert(host);
  }
}

// node17.site.example, node17 and site.example.
void hide_hosts(const std::set<std::string>& hosts, Redaction& redaction) {
  int number = 0;
  for (const std::string& host : hosts) {
    const std::string by = "HOST-" + std::to_string(++number);
    redaction.hide(host, by);
    const auto dot = host.find('.');
    if (dot == std::string::npos) continue;
    redaction.hide(host.substr(0, dot), by);
    redaction.hide(host.substr(dot + 1), "DOMAIN");
  }
}

// A file of the run that goes into the archive.
struct Kept {
  fs::path file;  // in the run folder
  std::string text;
};

// Whether the name is `before`, digits and `after`: another may be a patient's.
bool is_numbered(std::string_view name, std::string_view before,
                 std::string_view after) {
  if (!name.starts_with(before)) return false;
  name.remove_prefix(before.size());
  const auto digits =
      std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && name.substr(digits) == after;
}

bool is_record(std::string_view name) {
  return name == "metrics.jsonl" || name == "requeues" ||
         name == "postmortem.json" || is_numbered(name, "postmortem-", ".json");
}

std::vector<Kept> records_of(const fs::path& folder) {
  const ForeignFolder run(folder);
  if (const auto problem = run.problem_of("config.yaml"); !problem.empty())
    throw CheckpointError(
        "[doctor] {}: {}. Hint: ask the owner of the run to collect it",
        (folder / "config.yaml").string(), problem);
  std::vector<Kept> kept;
  const auto keep = [&](const ForeignFolder& from, const std::string& name,
                        const fs::path& as) {
    if (auto text = from.text_of(name)) kept.push_back({as, std::move(*text)});
  };
  keep(run, "config.yaml", "config.yaml");
  for (const std::string& name : run.names())
    if (is_record(name)) keep(run, name, name);

  if (const auto log = run.inner("log"))
    for (const std::string& name : log->names())
      if (is_numbered(name, "rank-", ".txt"))
        keep(*log, name, fs::path("log") / name);
  return kept;
}

// Whether the page can be drawn, and from files of the run alone.
bool has_own_results(const fs::path& folder) {
  const ForeignFolder run(folder);
  const auto names = run.names();
  const auto is_drawn = [](const std::string& name) {
    return name == "results.json" || name == "metrics.jsonl" ||
           name.starts_with("predictions_");
  };
  return std::ranges::find(names, "results.json") != names.end() &&
         std::ranges::none_of(names, [&](const std::string& name) {
           return is_drawn(name) && !run.problem_of(name).empty();
         });
}

// `records`: the config first.
Redaction names_of(const fs::path& folder, const std::vector<Kept>& records,
                   std::set<std::string> hosts) {
  assert(!records.empty() && records.front().file == "config.yaml");
  Redaction redaction;
  hosts.insert(host_name());
  for (const auto& [file, text] : records) {
    std::istringstream lines(text);
    for (std::string line;
         file.extension() == ".jsonl" && std::getline(lines, line);)
      add_hosts(nlohmann::json::parse(line, nullptr, false), hosts);
    if (file.extension() == ".json")
      add_hosts(nlohmann::json::parse(text, nullptr, false), hosts);
    if (file.extension() == ".txt") add_hosts_of_log(text, hosts);
  }
  hide_hosts(hosts, redaction);
  hide_split(folder / "split.csv", redaction);
  hide_folder(folder, redaction);
  hide_config(records.front().text, redaction);
  hide_user(::geteuid(), redaction);
  for (const auto& entry : fs::directory_iterator(folder)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) == 0)
      hide_user(info.st_uid, redaction);
  }
  return redaction;
}

// Absolute, without a slash at its end.
fs::path folder_of_run(const fs::path& run_folder) {
  check_holds_run(run_folder);
  const fs::path folder = fs::absolute(run_folder).lexically_normal();
  return folder.filename().empty() ? folder.parent_path() : folder;
}

// YAML is shown by the table of options, JSON value by value; all else is text.
std::string text_for_help(const Kept& record, const Redaction& redaction) {
  const auto ending = record.file.extension();
  if (ending == ".yaml") return config_for_help(record.text);
  if (ending == ".json" || ending == ".jsonl")
    return redaction.of_json(record.text);
  return redaction.of_text(record.text);
}

}  // namespace

Redaction redaction_of_run(const fs::path& run_folder,
                           const std::set<std::string>& hosts) {
  const fs::path folder = folder_of_run(run_folder);
  return names_of(folder, records_of(folder), hosts);
}

fs::path collect_for_help(const fs::path& run_folder,
                          const std::string& doctor_text,
                          const std::set<std::string>& hosts) {
  const fs::path folder = folder_of_run(run_folder);
  const auto records = records_of(folder);
  const Redaction redaction = names_of(folder, records, hosts);

  const TemporaryFolder place("doctor", "chexnet-help");
  const std::string name = "chexnet-help";
  const fs::path inside = place.path() / name;
  fs::create_directories(inside / "log");
  write_atomically(inside / "doctor.txt", redaction.of_text(doctor_text));
  for (const Kept& record : records)
    write_atomically(inside / record.file, text_for_help(record, redaction));

  if (has_own_results(folder)) try {
      write_atomically(inside / "report.html",
                       report_html(folder, {.for_sharing = true}));
    } catch (const CheckpointError& e) {
      log_warning(std::string(e.what()) + " (report.html is left out)");
    }

  const fs::path packed = place.path() / "packed", archive = name + ".tar.gz";
  // tar's headers name user and group of each file.
  const auto tar = output_of(
      {"tar", "-C", place.path().string(), "--owner=0", "--group=0",
       "--numeric-owner", "--sort=name", "-czf", packed.string(), name},
      60);
  if (tar.exit_code != 0)
    throw CheckpointError(
        "[doctor] {}: tar failed, see above. Hint: is TMPDIR full?",
        packed.string());
  write_atomically(archive, read_text(packed));
  return fs::absolute(archive);
}

}  // namespace chexnet
