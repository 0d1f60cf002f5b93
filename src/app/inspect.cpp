// inspect: an audit of a data set, for people (a page) and for scripts
// (--json). It counts faults that training would refuse: the reader wants to
// know all of them, and not the first.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/data/audit.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/report/run_files.hpp"
#include "patients.hpp"

namespace chexnet {
namespace {

struct InspectOptions {
  std::vector<std::string> files, set;
  PatientsQuery patients;
  int threads = 0;
  bool json = false;
};

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 1, ' ');
}
std::string right(size_t number, size_t width) {
  const std::string text = std::to_string(number);
  return std::string(width > text.size() ? width - text.size() : 1, ' ') + text;
}

// The number, and the first few of them.
void list(const char* what, const std::vector<std::string>& items,
          const char* good) {
  std::cout << padded(what, 22)
            << (items.empty() ? std::string(good)
                              : std::to_string(items.size()))
            << "\n";
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(kShown, items.size()); ++i)
    std::cout << "    " << printable(items[i]) << "\n";
  if (items.size() > kShown)
    std::cout << "    and " << items.size() - kShown
              << " more (--json has all)\n";
}

std::vector<std::string> joined(
    const std::vector<std::vector<std::string>>& groups,
    const std::string& sign) {
  std::vector<std::string> lines;
  for (const auto& names : groups)
    lines.push_back(names[0] + sign + names[1] +
                    (names.size() > 2
                         ? " and " + std::to_string(names.size() - 2) + " more"
                         : ""));
  return lines;
}

std::string conclusion(const Audit& a, const Manifest& m) {
  if (!a.clean()) return "look at the lines above before training";
  std::string notes;
  if (!a.duplicates.empty())
    notes += "; the same picture appears twice: " +
             std::to_string(a.duplicates.size());
  if (!a.near_duplicates.empty())
    notes +=
        "; nearly the same one: " + std::to_string(a.near_duplicates.size());
  if (!m.knows_patients)
    notes += "; whether a patient is in two splits is unknown";
  return notes.empty()
             ? "nothing wrong was found"
             : "nothing missing, damaged or leaking was found" + notes;
}

void print_page(const Audit& a, const Manifest& m) {
  std::cout << "table                 " << printable(m.path) << ", "
            << counted(std::ssize(m.images), "image") << ", sha256 "
            << m.sha256.substr(0, 12) << "\n";
  for (const auto& text : a.known)
    std::cout << padded("known numbers", 22) << text << "\n";
  list("missing images", a.missing, "none");
  list("not in the table", a.unlisted, "none");
  list("damaged", a.corrupt, "none");
  std::cout << padded("sizes", 22);
  size_t shown = 0;
  for (const auto& [size, images] : a.sizes) {
    if (++shown > 4) break;
    std::cout << (shown > 1 ? ", " : "") << size << ": " << images;
  }
  std::cout << (a.sizes.size() > 4 ? ", …" : "") << "\n";
  list("odd-sized", a.odd_sized, "none");
  list("of one gray", a.flat, "none");
  list("the same picture", joined(a.duplicates, " = "), "none");
  list("nearly the same one", joined(a.near_duplicates, " ~ "), "none");
  list("leaks between splits", a.leaks,
       m.knows_patients
           ? "none"
           : "patients unknown: no patient column; pictures: none");

  std::cout << "\n" << padded("positives", 28);
  for (const auto& split : a.splits)
    std::cout << std::string(10 - split.name.size(), ' ') << split.name;
  std::cout << "\n";
  const auto line = [&](const std::string& name, auto value) {
    std::cout << padded(name, 28);
    for (const auto& split : a.splits) std::cout << right(value(split), 10);
    std::cout << "\n";
  };
  line("images", [](const auto& s) { return s.images; });
  if (m.knows_patients)
    line("patients", [](const auto& s) { return s.patients; });
  if (a.splits.empty() || a.splits.front().has_no_finding)
    line("no finding", [](const auto& s) { return s.no_finding; });
  for (size_t k = 0; k < m.finding_count(); ++k)
    line(m.findings[k], [&](const auto& s) { return s.positives[k]; });
  line("unlabeled entries", [](const auto& s) { return s.unlabeled_entries; });
  for (size_t k = 0; k < m.finding_count(); ++k)
    if (std::ranges::any_of(a.splits,
                            [&](const auto& s) { return s.uncertain[k] > 0; }))
      line("-1 for " + m.findings[k],
           [&](const auto& s) { return s.uncertain[k]; });
  std::set<std::string> groups;
  for (const auto& split : a.splits)
    for (const auto& [name, group] : split.subgroups) groups.insert(name);
  for (const auto& name : groups)
    line(name, [&](const auto& s) {
      const auto group = s.subgroups.find(name);
      return group == s.subgroups.end() ? size_t{0} : group->second.images;
    });
  std::cout << "\n" << conclusion(a, m) << std::endl;
}

Json as_json(const Audit& a, const Manifest& m) {
  Json splits = Json::object();
  for (const auto& s : a.splits) {
    Json positives = Json::object(), uncertain = Json::object(),
         groups = Json::object();
    for (size_t k = 0; k < m.finding_count(); ++k) {
      positives[m.findings[k]] = s.positives[k];
      uncertain[m.findings[k]] = s.uncertain[k];
    }
    for (const auto& [name, group] : s.subgroups) {
      Json of_group = Json::object();
      for (size_t k = 0; k < m.finding_count(); ++k)
        of_group[m.findings[k]] = group.positives[k];
      groups[name] = {{"images", group.images},
                      {"positives", std::move(of_group)}};
    }
    splits[s.name] = {
        {"images", s.images},
        {"patients", m.knows_patients ? Json(s.patients) : Json(nullptr)},
        {"no_finding", s.has_no_finding ? Json(s.no_finding) : Json(nullptr)},
        {"unlabeled_entries", s.unlabeled_entries},
        {"positives", std::move(positives)},
        {"uncertain", std::move(uncertain)},
        {"subgroups", std::move(groups)}};
  }
  return {
      {"table", {{"path", m.path}, {"sha256", m.sha256}, {"images", m.size()}}},
      {"clean", a.clean()},
      {"known_numbers", a.known},
      {"missing", a.missing},
      {"not_in_table", a.unlisted},
      {"damaged", a.corrupt},
      {"sizes", a.sizes},
      {"odd_sized", a.odd_sized},
      {"one_gray", a.flat},
      {"same_picture", a.duplicates},
      {"nearly_same_picture", a.near_duplicates},
      {"leaks", a.leaks},
      {"splits", std::move(splits)}};
}

// A run instead of a config: which file is what.
int list_run(const InspectOptions& options) {
  const std::string& folder = options.files.front();
  if (!options.set.empty())
    throw ConfigError(
        "[inspect] --set changes a config, and {} is a folder. Hint: inspect "
        "{}/config.yaml --set {} looks at the data of a run",
        folder, folder, options.set.front());
  const auto found = files_of_run(folder);
  if (options.json) {
    Json files = Json::array();
    for (const auto& kind : found)
      files.push_back({{"name", kind.name.empty() ? Json() : Json(kind.name)},
                       {"what", kind.what},
                       {"files", kind.files},
                       {"bytes", kind.bytes}});
    std::cout << json_text(Json{{"run", folder}, {"files", std::move(files)}})
              << std::endl;
    return 0;
  }
  std::vector<std::vector<std::string>> lines = {
      {"files", "number", "size", "what"}};
  for (const auto& kind : found)
    lines.push_back({kind.name.empty() ? "of no kind" : kind.name,
                     std::to_string(kind.files),
                     readable_bytes(static_cast<double>(kind.bytes)),
                     kind.what});
  std::cout << "run " << printable(folder) << "\n"
            << columns(lines) << "its data: inspect " << printable(folder)
            << "/config.yaml\n";
  return 0;
}

int say_patients(const InspectOptions& options) {
  if (options.files.size() > 1 || !options.set.empty())
    throw ConfigError(
        "[inspect] --patient asks one run folder, and nothing else. Hint: "
        "inspect RUN --patient ID ID");
  PatientsQuery query = options.patients;
  query.run = options.files.front();
  query.json = options.json;
  print_patients(query);
  return 0;
}

struct AuditedData {
  Manifest manifest;
  Audit audit;
};

// Named as hanging when nothing moves for launch.timeout_s.
AuditedData audited(const Config& config, int threads) {
  AuditedData data;
  Progress bar(true);
  const auto work = [&](WorkProgress& progress) {
    data.manifest = read_manifest(config.data, config.eval);
    const Splits splits = make_splits(data.manifest, config.data);
    const auto stores = open_stores(config.data);
    progress.advance();
    const double start = now_s();
    size_t seen = 0;
    const auto show = [&](size_t done, size_t all) {
      if (done != std::exchange(seen, done)) progress.advance();
      if (all == 0) return;
      bar.show("inspecting: " +
               percent_and_time_left(
                   static_cast<double>(done) / static_cast<double>(all),
                   now_s() - start));
    };
    data.audit =
        audit(config.data, data.manifest, splits, *stores, threads, show);
  };
  share_work(*solo_communicator(),
             {"inspecting the images", config.launch.timeout_s}, work);
  bar.clear();
  return data;
}

int audit_data(const InspectOptions& options,
               std::optional<StorageWait>& reading) {
  const Config config =
      load_config({options.files.begin(), options.files.end()}, options.set,
                  nullptr, [](Config& c) {
                    c.data.allow_patient_leak = true;  // counted, not refused
                  });
  check_names_data(config.data);
  reading.reset();
  const int threads = options.threads > 0
                          ? options.threads
                          : static_cast<int>(allowed_cpus().size());
  const auto [manifest, result] = audited(config, threads);
  if (options.json)
    std::cout << json_text(as_json(result, manifest)) << std::endl;
  else
    print_page(result, manifest);
  return result.clean() ? 0 : static_cast<int>(ExitCode::kData);
}

int run(const InspectOptions& options) {
  const std::string& first = options.files.front();
  std::optional<StorageWait> reading(
      std::in_place, timeout_of_start(options.set), "reading " + first);
  if (!options.patients.patients.empty()) return say_patients(options);
  if (options.files.size() == 1 && std::filesystem::is_directory(first))
    return list_run(options);
  return audit_data(options, reading);
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "inspect",
      "audit a data set: damage, duplicates, leaks; or look into a run");
  auto options = std::make_shared<InspectOptions>();
  command
      ->add_option("config", options->files,
                   "YAML files with the data section; or a run folder")
      ->required();
  add_set_option(*command, options->set, "the files");
  auto* patients = command
                       ->add_option("--patient", options->patients.patients,
                                    "of a run: which of its splits these "
                                    "patients were in, if any; ids as the "
                                    "run's table has them")
                       ->type_name("ID ...");
  command
      ->add_option("--key", options->patients.key,
                   "key of the run's pseudonyms (default: as the run's config "
                   "says)")
      ->needs(patients);
  command->add_option("--threads", options->threads, "threads; 0 = all cores")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
