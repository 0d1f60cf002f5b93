// report: the page of a run again, from its records: after `train` wrote it, or
// in the form that may be passed on.
#include <CLI/CLI.hpp>
#include <memory>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/report/html_report.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string run, out;
  bool no_images = false;
};

int run(const Options& options) {
  const fs::path folder = options.run;
  fs::path out = options.out;
  if (out.empty())
    out = folder / (options.no_images ? "report-shared.html" : "report.html");
  check_output(out.string());
  write_atomically(out,
                   report_html(folder, {.for_sharing = options.no_images}));
  log_info("report " + out.string());
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "report", "one HTML page of a run: what it separates, how surely, how");
  auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "run folder")->required();
  command
      ->add_option("--out", options->out,
                   "the page (default: report.html in the run, with "
                   "--no-images report-shared.html)")
      ->check(in_file_system());
  command->add_flag("--no-images", options->no_images,
                    "for passing on: no pictures, paths, patients, hosts, "
                    "users");
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
