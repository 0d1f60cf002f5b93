// report: the page of a run again, from its records: after `train` wrote it, in
// the form that may be passed on, or of several runs side by side.
#include <CLI/CLI.hpp>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/report/html_report.hpp"
#include "run_folders.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = "<!doctype html>";

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  bool no_images = false, compare = false;
};

fs::path page_of(const ReportArguments& options) {
  if (!options.out.empty()) return options.out;
  if (options.compare) return "comparison.html";
  return fs::path(options.runs.front()) /
         (options.no_images ? "report-shared.html" : "report.html");
}

// A page is as private as the most private of its runs.
void keep_private(const std::vector<std::string>& runs) {
  constexpr auto kOthers = fs::perms::others_all;
  std::error_code error;
  for (const auto& run : runs)
    if ((fs::status(run, error).permissions() & kOthers) == fs::perms::none)
      hide_from_others();
}

// The runs that the page is of. Each form of the page needs another part of
// config.yaml, and a folder that one of them refuses is refused by all.
std::vector<fs::path> checked_runs(const ReportArguments& options) {
  if (options.compare) return runs_below(options.runs);
  if (options.runs.size() > 1)
    throw ConfigError("[report] {} runs. Hint: one, or --compare",
                      options.runs.size());
  check_config_of(options.runs.front());
  return {options.runs.front()};
}

int run(const ReportArguments& options) {
  const StorageWait files(timeout_of_start({}),
                          "making the page of " + options.runs.front());
  const std::vector<fs::path> runs = checked_runs(options);
  const fs::path page = page_of(options);
  prepare_own_output(page.string(), kHead);
  keep_private(options.runs);
  std::vector<std::string> sentences;
  if (options.compare) {
    ComparisonPage compared = comparison_page(runs);
    write_atomically(page, compared.html);
    sentences = std::move(compared.sentences);
  } else if (options.no_images || !options.out.empty()) {
    write_atomically(
        page, report_html(runs.front(), {.for_sharing = options.no_images}));
  } else {
    write_report(runs.front());
  }
  log_info("report " + page.string());
  for (const auto& sentence : sentences) log_info(sentence);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "report", "one HTML page of a run: what it separates, with intervals");
  auto options = std::make_shared<ReportArguments>();
  command->add_option("runs", options->runs, "run folder")
      ->check(in_file_system())
      ->required();
  auto* compare = command->add_flag(
      "--compare", options->compare,
      "several runs, or a folder of runs, on one page: settings over their "
      "seeds, and which is better on the same images");
  command
      ->add_option("--out", options->out,
                   "the page (default: report.html and model_card.md in the "
                   "run; report-shared.html there with --no-images; "
                   "comparison.html here with --compare)")
      ->check(in_file_system());
  command
      ->add_flag("--no-images", options->no_images,
                 "for passing on: no pictures, paths, patients, hosts, users")
      ->excludes(compare);
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
