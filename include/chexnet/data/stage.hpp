// Copies packs, shards and archives to a disk of the node before training, once
// per node, when they are on a network: every epoch then reads locally.
#pragma once

#include <functional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/choices.hpp"
#include "chexnet/data/image_index.hpp"

namespace chexnet {

struct StageOptions {
  StageChoice where;                // data.stage
  double timeout_s = 600;           // without progress
  std::function<bool()> stop = {};  // as SharedWorkOptions has it
};

// The index with the staged copies instead of the originals. Where it is
// automatic: on a network file system or object store, and with room for it,
// the first of $SLURM_TMPDIR, $TMPDIR and /tmp. Copies are below
// chexnet-stage-UID there, which only this user may enter. One rank of a node
// copies while the others wait as long as it makes progress; a copy of the same
// content (staged_copy.hpp) whose checksums hold is used again, and one that
// was begun is continued. DataError (on all ranks) when a named folder has no
// room or cannot be written; WorkStopped.
ImageIndex staged(ImageIndex index, const StageOptions& options, Stores& stores,
                  Communicator& comm);

}  // namespace chexnet
