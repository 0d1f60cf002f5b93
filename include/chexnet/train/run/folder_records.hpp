// The records of a run in its folder, for the parent of its ranks.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "chexnet/comm/watch/wait_deadline.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/launch/restart_loop.hpp"

namespace chexnet {

class FolderRecords : public RunRecords {
 public:
  // Before ranks of this command have the folder. `config`: of a training,
  // which outlives this; null: another command, without records. `resumes`: a
  // run that the folder holds is meant. `resume_command` goes on with it.
  FolderRecords(const Config* config, bool resumes, std::string resume_command);

  bool exist() const override { return !folder_.empty(); }
  bool are_ours() const override;
  [[noreturn]] void refuse() const override;
  Mark begun() const override;
  std::string checkpoint() const override;
  int64_t batch() const override;
  void put_aside() override;
  std::optional<EndNote> postmortem() const override;
  std::optional<int> end_code() const override;
  EndNote explain(const std::string& what) override;
  // Also in the log; where a post-mortem says it already, in the log alone.
  void explain_late_start(const std::string& what,
                          const std::string& hint) override;
  void explain_stop() override;
  void record_stop(const std::string& reason) override;
  void tell_monitors() override;
  bool stop_is_requested() const override;
  void remove_old_stop_file() override;

 private:
  // Storage that does not answer would make the parent deaf to signals: after
  // launch.timeout_s this process ends with exit code 7, and all ranks with it.
  WaitDeadline::Wait storage_wait() const;
  // Nobody else has the folder. Call it only while no rank of this command is
  // alive.
  bool may_be_written() const;

  const Config* config_;
  std::filesystem::path folder_;
  bool resumes_;
  std::string resume_command_;
  Mark config_before_, stop_before_;
  Mark config_before_start_;                        // the last one
  mutable std::unique_ptr<WaitDeadline> deadline_;  // from the first wait on
};

}  // namespace chexnet
