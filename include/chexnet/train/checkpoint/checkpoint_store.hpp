// The checkpoints of a run folder: checkpoints/step-00001234/ with files and a
// state.json that is written last and names size and SHA-256 of each, and of
// itself, so a folder is either whole or known to be broken; beside them the
// links `last` and `best`. Rank 0 only; knows no trainer.
//
// Errors: CheckpointError where the file system refuses (full, no links, no
// permission), OutageError where it does not answer. Neither says anything
// about a checkpoint's content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace chexnet {

class CheckpointStore {
 public:
  // `keep` newest checkpoints stay, and the one that `best` points to.
  CheckpointStore(std::filesystem::path folder, int keep);

  // `write_files` puts its files into the folder it is given. `state` is a JSON
  // object; "files" is added to it. Moves the link `last`. Of a valid
  // checkpoint of the same step only the state is replaced.
  void save(
      int64_t step, const std::string& state,
      const std::function<void(const std::filesystem::path&)>& write_files);

  // Another state for the checkpoint of `step`, whose files stay: what an
  // evaluation found of it.
  void replace_state(int64_t step, const std::string& state);
  // Another content for the file `name` of the checkpoint of `step`, which is
  // whole at every moment: `write` makes a new file at the path it is given.
  // Without space for it nothing is changed.
  void replace_file(
      int64_t step, const std::string& name,
      const std::function<void(const std::filesystem::path&)>& write);
  // Moves the link `best`.
  void mark_best(int64_t step);
  bool has_whole(int64_t step) const;

  // The newest whole checkpoint, after which the link `last` points to it;
  // newer ones whose content is not what their state.json says are moved aside
  // with a warning. Nothing where there never was a checkpoint;
  // CheckpointError, and nothing is moved, where there are only broken ones.
  std::optional<std::filesystem::path> recover_newest();

  // Empty when whole, else how its content differs from its state.json: of all
  // files, or of `only` this one.
  static std::string problem(const std::filesystem::path& checkpoint,
                             const std::string& only = "");
  // The JSON text.
  static std::string read_state(const std::filesystem::path& checkpoint);

 private:
  void point(const char* link, const std::string& target) const;
  void remove_old() const;
  std::filesystem::path folder_;
  int keep_;
};

// A model file from what a user names: the file itself, or the
// model.safetensors of a checkpoint folder or of a run folder (its `best`, else
// `last`). Scoring needs nothing else, so other files may be absent; where
// there is a state.json, the model must be the one it names. CheckpointError
// when there is none.
std::filesystem::path resolve_model(const std::filesystem::path& named);

}  // namespace chexnet
