// Whether the run in a folder is the one that this command began or was told to
// go on with. A start may end before its rank 0 has looked at the folder, and
// then whatever run is there is another one: nothing is written to it, and no
// further start goes on with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "chexnet/app/enter_world.hpp"

namespace chexnet {

class OwnRun {
 public:
  // Before ranks of this command have the folder.
  explicit OwnRun(const ParentTask& task);

  // The post-mortem in it is of this command's ranks.
  bool is_ours() const;
  // Besides, nobody else has the folder. To be asked while no rank of this
  // command runs.
  bool may_be_written() const;
  // The config of the run that ranks of this command have begun or go on with,
  // as it stands now: each start that takes the folder writes it. None: they
  // have begun none.
  using Stamp = std::optional<std::pair<ino_t, int64_t>>;
  Stamp begun() const;

  // A STOP file that was there before asked an earlier start.
  bool stop_is_requested() const;
  void remove_old_stop_file() const;

 private:
  std::filesystem::path folder_;
  bool resumes_;
  Stamp config_before_, stop_before_;
};

}  // namespace chexnet
