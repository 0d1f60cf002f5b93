#include "chexnet/report/waiting_run.hpp"

#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {
namespace {

namespace fs = std::filesystem;

bool has_begun(const fs::path& run_folder) {
  std::error_code error;
  return fs::exists(run_folder / "config.yaml", error);
}

fs::path file_of(const fs::path& run_folder) {
  return run_folder / "submitted";
}

}  // namespace

void note_waiting_run(const fs::path& run_folder, const std::string& job) {
  if (has_begun(run_folder)) return;
  std::error_code error;
  fs::create_directories(run_folder, error);
  if (error)
    throw CheckpointError(
        "[run] {}: cannot be created: {}. Hint: does the job write there, and "
        "this host not?",
        run_folder.string(), error.message());
  write_atomically(file_of(run_folder), job + "\n");
  // It may have begun meanwhile, and it looks but once.
  if (has_begun(run_folder)) forget_waiting_run(run_folder);
}

bool is_waiting_run(const fs::path& run_folder) {
  std::error_code error;
  return !has_begun(run_folder) && fs::exists(file_of(run_folder), error);
}

std::string waiting_job(const fs::path& run_folder) {
  const std::string text = read_text(file_of(run_folder));
  return text.substr(0, text.find('\n'));
}

void forget_waiting_run(const fs::path& run_folder) {
  std::error_code ignored;
  fs::remove(file_of(run_folder), ignored);
}

}  // namespace chexnet
