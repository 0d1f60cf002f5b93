// Names and files of a run. Only the seed changes what is computed, so only the
// seed is fixed for the run.
#include "table.hpp"

namespace chexnet {

std::vector<ConfigOption> run_table() {
  return {
      {
          MEMBER(run.dir),
          .help = "run folder; empty = runs/<run.name>; --out sets it",
          .is_path = true,
          .may_change_on_resume = true,
      },
      {
          MEMBER(run.name),
          .help = "name of the run, and of its folder below runs/",
          .may_change_on_resume = true,
      },
      {
          MEMBER(run.seed),
          .help = "seed of order, augmentation and initial weights",
          .limits = {{0, kNoMaximum}},
      },
      {
          MEMBER(run.world_readable),
          .help = "make the run's files readable by everybody; false: by the "
                  "user, and by the group where the umask allows it",
          .may_change_on_resume = true,
      },
      {
          MEMBER(run.log_every),
          .help = "steps between two train lines of metrics.jsonl",
          .limits = {{1, kNoMaximum}},
          .may_change_on_resume = true,
      },
  };
}

}  // namespace chexnet
