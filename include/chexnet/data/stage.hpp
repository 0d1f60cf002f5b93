// Copies packs, shards and archives to a disk of the node before training, once per node, when they
// lie on a network: every epoch then reads locally.
#pragma once

#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/data/image_index.hpp"

namespace chexnet {

// The index with the staged copies in place of the originals. `where`: off; a folder; or auto = on
// a network file system or object store, and with room for it, the first of $SLURM_TMPDIR, $TMPDIR
// and /tmp. One rank of a node copies while the others wait; a copy that is there with the right
// size and checksum is used again. DataError (on all ranks) when a named folder has no room or
// cannot be written.
ImageIndex staged(ImageIndex index, const std::string& where, Stores& stores, Communicator& comm);

}  // namespace chexnet
