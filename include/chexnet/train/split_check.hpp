// Whether the images that will be scored can be: a damaged one should be found before days of
// training and not after them.
#pragma once

#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/dataset.hpp"

namespace chexnet {

// Decodes every image of the validation split and of eval.splits once, each on one rank; the
// training images are seen soon enough. DataError on all ranks as data.corrupt and
// data.corrupt_limit say. `looked_at` of a resumed run says what was looked at by an earlier start,
// which is not done again; it becomes what has been looked at now. Collective.
void check_splits(const Config& config, const Dataset& dataset, Communicator& comm, int threads,
                  std::string& looked_at);

}  // namespace chexnet
