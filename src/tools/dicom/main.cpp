// chexnet-dicom: DICOM radiographs to 8-bit gray PNG and a table, once, before
// training.
#include <gdcmTrace.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/config/load.hpp"
#include "chexnet/core/command_line.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "conversion.hpp"
#include "results.hpp"

namespace {

// Keys of an object store are of no use here, and GDCM reads files of others:
// overwritten where the kernel put them, so that neither workers nor
// /proc/PID/environ have them.
void forget_store_keys() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t name = text.find('=');
    if (!text.starts_with("AWS_") || name == std::string_view::npos) continue;
    names.emplace_back(text.substr(0, name));
    explicit_bzero(*entry + name + 1, text.size() - name - 1);
  }
  for (const auto& name : names) ::unsetenv(name.c_str());
}

}  // namespace

// Where even an error cannot be told, the process may as well be aborted.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  using namespace chexnet;
  forget_store_keys();
  signal(SIGXFSZ, SIG_IGN);  // a write says what is wrong
  CLI::App app{
      "Converts DICOM chest radiographs to 8-bit gray PNG with a table for "
      "data.manifest.format csv. For research use, not a medical device."};
  app.name("chexnet-dicom");
  ConversionOptions options;
  std::string results;
  auto* asked = app.add_option(
      "--results", results,
      "instead: write what predict found, from the request it made");
  app.add_option("in", options.in, "DICOM files, or folders of them")
      ->excludes(asked);
  app.add_option("--out", options.out, "folder to write")
      ->excludes(asked)
      ->check(CLI::Validator(object_store_problem, "", "in a file system"));
  app.add_option("--ids", options.ids,
                 "pseudonym (keyed, with a private map file) or keep")
      ->check(CLI::IsMember({"pseudonym", "keep"}))
      ->capture_default_str();
  app.add_option(
      "--key-file", options.key_file,
      "key of the pseudonyms (OUT.key); made when it does not exist");
  app.add_option("--map-file", options.map_file,
                 "private map of pseudonyms (OUT.map.csv)");
  app.add_option(
      "--outcomes-file", options.outcomes_file,
      "write what became of each file here: file, image, problem, instance, "
      "note; private as the map");
  app.add_flag("--any-dicom", options.limits.any_dicom,
               "also what is no chest X-ray by its Modality or body part");
  app.add_option("--max-pixels", options.limits.max_pixels,
                 "largest width x height")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--max-seconds", options.limits.seconds,
                 "longest time per file")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_flag("--json", options.json,
               "one JSON object on stdout (docs/json.md)");
  gdcm::Trace::SetWarning(false);
  gdcm::Trace::SetError(false);
  try {
    refuse_empty_values(app, {argv + 1, argv + argc});
    app.parse(argc, argv);
    if (results.empty() && (options.in.empty() || options.out.empty()))
      throw CLI::RequiredError("DICOM files and --out");
  } catch (const CLI::ParseError& e) {
    return say_end_of_parsing(app, e);
  }
  try {
    if (results.empty()) return code_when_said(convert(options));
    // Without it the next predict may have the folder.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    write_results(results);
    return code_when_said(0);
  } catch (const Error& e) {
    log_error(e.what());
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    log_error(std::string("[dicom] ") + e.what());
    return static_cast<int>(ExitCode::kData);
  }
}
