// The checkpoints of a run folder: checkpoints/step-00001234/ with files and a state.json that is
// written last and names size and SHA-256 of each, so a folder is either whole or known to be
// broken. Rank 0 only; knows no trainer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace chexnet {

class CheckpointStore {
 public:
  // `keep` newest checkpoints stay, and the one that `best` points to.
  CheckpointStore(std::filesystem::path folder, int keep);

  // `write_files` puts its files into the folder it is given. `state` is a JSON object; "files" is
  // added to it. Moves the link `last` (and `best`). A valid checkpoint of the same step is kept as
  // it is.
  void save(std::int64_t step, const std::string& state, bool is_best,
            const std::function<void(const std::filesystem::path&)>& write_files);

  // The newest whole checkpoint; broken ones are moved aside with a warning.
  std::optional<std::filesystem::path> newest_valid() const;

  // Empty when whole, else what is wrong: with all files, or with `only` this one.
  static std::string problem(const std::filesystem::path& checkpoint, const std::string& only = "");
  static std::string read_state(const std::filesystem::path& checkpoint);  // the JSON text

 private:
  void point(const char* link, const std::string& target) const;
  void remove_old() const;
  std::filesystem::path folder_;
  int keep_;
};

// A model file from what a user names: the file itself, or the model.safetensors of a checkpoint
// folder or of a run folder (its `best`, else `last`). Scoring needs nothing else, so other files
// may be absent; where there is a state.json, the model must be the one it names. CheckpointError
// when there is none.
std::filesystem::path resolve_model(const std::filesystem::path& named);

}  // namespace chexnet
