// What a JobRequest asks of each batch system, as lines for the head of a
// script.
#pragma once

#include <string>

#include "chexnet/tools/jobs/job_script.hpp"

namespace chexnet {

int ranks_per_node(const JobRequest& request);

// "#SBATCH --nodes=2" and so on, each with its line end.
std::string directive_lines(const JobRequest& request);

// Those of PBS as words for qsub, and apart from them, with a comma after each,
// the variables that they give a job.
struct QsubOptions {
  std::string words, variables;
};
QsubOptions qsub_options(const JobRequest& request);

}  // namespace chexnet
