// results.json: settings and results of a run, complete enough to write its
// report from, without its data. Written once at the end of a run. Fields:
// docs/json.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/report/gpu_totals.hpp"
#include "chexnet/report/resume_change.hpp"
#include "chexnet/report/scores_output.hpp"

namespace chexnet {

struct SplitFacts {
  std::string name;  // train, val or test
  size_t images = 0;
  std::optional<size_t> patients;  // empty where they are not known
  std::string sha256;              // of its images' names
  size_t missing = 0;              // left out by data.missing=skip
};

struct RunFacts {
  std::string name, command;  // command: it repeats the run unchanged
  std::vector<ResumeChange> changes;
  std::string table, table_sha256;
  std::string release;  // of the labels, as far as counts tell
  std::vector<SplitFacts> splits;
  std::optional<size_t> patients_in_two_splits;
  size_t pictures_in_two_splits = 0;
  std::string network, frozen;  // frozen: "frozen until …"; empty: nothing
  int64_t input_px = 0;
  bool weighted_loss = false;  // scores are shifted away from prevalence
  std::string scored;          // "best" or "last" weights
  int64_t scored_step = 0;
  Rows settings;
  std::optional<GpuTotals> gpu_totals;
  Json overlap;                      // overlap_json; null: no step was made
  Json transports = Json::object();  // of NCCL; empty: it connected nothing
};

// Into `folder`, atomically.
void write_results(const std::filesystem::path& folder, const RunFacts& facts,
                   const std::vector<SplitScores>& results);

// The members of an ensemble and its results.
struct EnsembleMember {
  struct Score {
    std::optional<double> auroc;  // mean over so many findings
    size_t findings = 0;
  };
  std::string run, model_sha256;  // its folder's name; its model file's sum
  Score validation, test;         // its own
  // The ensemble's mean AUROC on test minus its own, on the same images.
  Estimate difference;
};
// By finding, over the images of a split that several members scored, of their
// spread (Predictions::spreads).
struct SpreadFacts {
  std::string finding;
  double median = 0, most = 0;
};
struct EnsembleFacts {
  std::string name, command;
  std::vector<SplitFacts> splits;
  bool out_of_fold = false;  // validation is: eval/ensemble.hpp
  std::vector<EnsembleMember> members;
  // The same against the members in the mean: 95 % for other patients.
  std::optional<double> difference;
  std::optional<Interval> interval;
  std::vector<SpreadFacts> spreads;  // on test
};
// The same for an ensemble of runs whose results are `of_members`: data and
// network are the first's, settings those that all have.
void write_ensemble_results(const std::filesystem::path& folder,
                            const std::vector<Json>& of_members,
                            const EnsembleFacts& facts,
                            const std::vector<SplitScores>& results);

// Readers must check every value: a run folder may come from somebody else
// (report_values.hpp). CheckpointError: there is none, or it is no such file.
Json read_results(const std::filesystem::path& folder);
// Whether a table of predictions is the one that the figures of an evaluation
// of results.json are of, by its SHA-256.
bool is_scored_table(const std::filesystem::path& table,
                     const Json& evaluation);
// A run's table of predictions, with the patients of its split.csv, `rows`;
// an image that these do not name counts as another patient.
Predictions predictions_of_run(const std::filesystem::path& table,
                               const std::vector<SplitRow>& rows);
// An ensemble beside its members, for a terminal: mean AUROCs on validation and
// test, and the difference.
std::string ensemble_text(const Json& results);
// "they are too good, as N pictures …", of a run's figures, where validation
// and test images are in another split, too, under another name; else empty.
std::string shared_pictures_text(const Json& results);

}  // namespace chexnet
