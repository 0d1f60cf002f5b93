// Whether eval.batch fits the memory, and the images that are to be scored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/data/split.hpp"

namespace chexnet {

struct EvalPass {
  uint64_t batch = 1;          // eval.batch
  uint64_t side = 224;         // data.crop, pixels
  size_t images_per_rank = 0;  // to be scored
  size_t networks = 1;         // of an ensemble, each with its own maps
  // Of the host, that this rank may take; 0: not known, or of no concern.
  uint64_t free_bytes = 0;
};

// Why not even the first map of a pass fits, and what fits; "" where it does.
std::string no_room_for(const EvalPass& pass);
// That most of a pass is padding, and which batch has less; "" where it is not.
std::string padding_of(const EvalPass& pass);

// Both for a split that will be scored, before memory is taken for it: the
// system lends more than there is, and ends the process later. ConfigError; a
// warning of rank 0. `on_host`: the networks compute in the host's memory.
void check_eval_batch(const Config& config, const Split& split, size_t networks,
                      const Communicator& comm, bool on_host);

}  // namespace chexnet
