#include "job_hand_over.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <iostream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/container.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/report/waiting_run.hpp"

namespace chexnet {
namespace {

// A script that nobody else can read, for as long as the batch system needs it.
class PrivateScript {
 public:
  explicit PrivateScript(const std::string& text) {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    if (error)
      throw ConfigError(
          "[submit] {}: there is no folder for the script. Hint: TMPDIR names "
          "one",
          error.message());
    path_ = unforeseeable_name(folder / "chexnet-job");
    constexpr unsigned kOwnersAlone = 0600;
    write_atomically(path_, text, kOwnersAlone);
  }
  ~PrivateScript() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  PrivateScript(const PrivateScript&) = delete;
  PrivateScript& operator=(const PrivateScript&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Returns the job: the first line that is printed.
std::string hand_over(const std::vector<std::string>& command) {
  constexpr double kTimeout_s = 60;
  const ChildOutput result = output_of(command, kTimeout_s);
  std::cout << result.output << std::flush;
  if (result.exit_code != 0)
    throw DeviceError(
        "[submit] {} failed, see above. Hint: --dry-run shows what is handed "
        "over; account, partition and the like belong into $CHEXNET_SITE",
        command_text(command));
  return result.output.substr(0, result.output.find('\n'));
}

// For `status`. What cannot be noted takes nothing from a job that was taken.
void note_waiting(const std::string& run_folder, const std::string& job) {
  const unsigned mask = hide_from_others();  // as the run itself; jobs are not
  try {
    note_waiting_run(run_folder, job);
  } catch (const Error& e) {
    log_warning(std::string(e.what()) +
                " (the job is submitted; status will show the run when it has "
                "begun)");
  }
  umask(mask);
}

}  // namespace

void hand_over(const JobRequest& request, const std::string& text) {
  const PrivateScript script(text);
  const bool slurm = request.scheduler == Scheduler::kSlurm;
  const std::string job =
      slurm ? hand_over({"sbatch", "--parsable", script.path()})
            : hand_over({"qsub", script.path()});
  const auto on_host = [&](const std::string& run_folder) {
    return path_on_host(run_folder, request.mounts).string();
  };
  for (const auto& point : request.points)
    note_waiting(on_host(point.run_folder), job);
  if (request.points.empty()) note_waiting(on_host(request.run_folder), job);
  log_info(
      "submitted. Where it stands: " +
      command_text(
          {request.program.front(), "status", on_host(request.run_folder)}) +
      (slurm ? "; what it prints: " + job_name(request) + "-*.out here" : ""));
}

}  // namespace chexnet
