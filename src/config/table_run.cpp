// Names and files of a run, and what its files say of patients. Only the seed
// changes what is computed, so only the seed is fixed for the run.
#include "option_table.hpp"

namespace chexnet {

std::vector<ConfigOption> run_table() {
  return {
      {
          MEMBER(run.dir),
          .help = "run folder; empty = runs/<run.name>; --out sets it",
          .is_path = true,
          .effect = Effect::kNone,
      },
      {
          MEMBER(run.name),
          .help = "name of the run, and of its folder below runs/",
          .effect = Effect::kNone,
          .tier = Tier::kCommon,
      },
      {
          MEMBER(run.seed),
          .help = "seed of order, augmentation and initial weights",
          .limits = {{0, kNoMaximum}},
          .tier = Tier::kCommon,
      },
      {
          MEMBER(run.log_every),
          .help = "steps between two train lines of metrics.jsonl",
          .limits = {{1, kNoMaximum}},
          .effect = Effect::kNone,
      },
      {
          MEMBER(run.prometheus),
          .help =
              "folder that Prometheus' node exporter reads: the run keeps a "
              "file of its figures there; empty = none",
          .is_path = true,
          .effect = Effect::kNone,
      },
      {
          MEMBER(run.after_checkpoint),
          .help = "shell command that runs beside training after each "
                  "checkpoint and at the end, with a view of the run folder as "
                  "$1 (docs/cluster.md); empty = none",
          .effect = Effect::kNone,
      },
  };
}

// Ids of patients. No result depends on the form in which files have them.
std::vector<ConfigOption> privacy_table() {
  return {
      {
          MEMBER(privacy.ids),
          .help =
              "how split.csv calls patients: plain as the table does, or by "
              "a pseudonym, an HMAC with the key; auto: plain for the "
              "public layouts nih and chexpert, whose ids are none of "
              "patients, else by pseudonyms",
          .effect = Effect::kNone,
      },
      {
          MEMBER(privacy.key),
          .help = "file of the key, made (mode 0600) where there is none; "
                  "empty = patients.key in $XDG_CONFIG_HOME/chexnet-train or "
                  "~/.config/chexnet-train",
          .is_path = true,
          .effect = Effect::kNone,
      },
  };
}

}  // namespace chexnet
