// The options of `submit`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

// Empty, 0 and, of max_requeues, -1: not given.
struct SubmitOptions {
  std::vector<std::string> files, set, sweep, lines, setup, mounts;
  bool dry_run = false, exclusive = false, stop_losers = false;
  int nodes = 0, ranks_per_node = 0, gpus_per_node = 0, cpus_per_rank = 0,
      max_requeues = -1, seeds = 0;
  std::string scheduler, account, partition, qos, constraint, memory, time,
      name, site, launcher, out, container;

  void add_to(CLI::App& command);
  // --site, else $CHEXNET_SITE; empty: there is none.
  std::string site_file() const;
  // What was given goes before what the site file says. ConfigError for a mount
  // without a container.
  void apply_to(JobRequest& request) const;
};

// The value of --scheduler for a sweep on this machine.
inline constexpr const char* kLocal = "local";
// Such a sweep is no job: CLI::ExcludesError for an option that only jobs read.
void refuse_options_of_jobs(const CLI::App& command);

}  // namespace chexnet
