// A run in an object store: PLACE/config.yaml, metrics.jsonl, …, as in a run
// folder, and PLACE/checkpoints/step-00001234/. The run itself works in a local
// folder, which is sent there from a thread.
//
// A checkpoint is there once its state.json is: that is written last, and
// removed first. checkpoints/last and checkpoints/best are objects that hold
// the name of a step.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/data/image_index.hpp"
#include "chexnet/storage/store.hpp"

namespace chexnet {

// The local folder of a run at PLACE (s3://bucket/prefix), which nobody else
// may write: directly in a folder below the first of $SLURM_TMPDIR, $TMPDIR and
// /tmp that is a local disk. Its name is PLACE with '+' for '/', so that it is
// in no other run's. ConfigError for a place that can be no folder's name, or
// that could be inside another run.
std::filesystem::path working_folder(const std::string& place);
// Made where it is absent, all of it for this user alone.
void make_working_folder(const std::filesystem::path& folder);

enum class FetchedFiles {
  kRecords,  // all but checkpoints, of the newest state.json; also those of
             // the runs directly below PLACE where that is none
  kModel,    // state.json and model.safetensors of the best, else last step,
             // and the records that commands which score look at
  kResume    // records, and the newest and the best checkpoint as a whole
};

// Copies the run at PLACE into `folder`, as a run folder, and nothing of runs
// below it. Files have the times that the store names. Content is checked
// against state.json; a newest checkpoint that is not whole is passed over with
// a warning. AbsentError where there is nothing; CheckpointError where there
// are checkpoints and none is whole, where there are no records of a run, or
// where files cannot be written.
void fetch_run(Store& store, const std::string& place,
               const std::filesystem::path& folder, FetchedFiles files,
               const Tick& tick);

}  // namespace chexnet
