// What the watchdog does when a run fails: a sentence in the log, a file, the
// end of the process. The parts that decide it see this interface alone; tests
// count its calls.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/watch/failure_detector.hpp"

namespace chexnet {

class RunEnd {
 public:
  virtual ~RunEnd() = default;
  // mpirun or a batch system is ending this job: there is a second to find out
  // why.
  virtual bool launcher_ends_job() const = 0;
  // From now on this process ends with `code` within seconds, whatever hangs in
  // between: a file system, or the pipe that the log goes to.
  virtual void exit_within_limit(int code) = 0;
  // postmortem.json, unless somebody has explained this run's end already; and
  // the sentence in the log, where no parent will read it there. Does not wait
  // for storage that hangs. May throw when the file cannot be written.
  virtual void explain(const Failure& failure,
                       const std::vector<RankView>& views) = 0;
  virtual void log_line(const std::string& error) = 0;
  // Does not return, except in tests.
  virtual void end_process(int code) = 0;
};

// Of this process. `resume_command`: for the post-mortem. `last_act`: comes
// before the process ends, within exit_within_limit(); may throw.
std::unique_ptr<RunEnd> process_end(std::filesystem::path run_folder,
                                    std::string resume_command,
                                    std::function<void()> last_act);

}  // namespace chexnet
