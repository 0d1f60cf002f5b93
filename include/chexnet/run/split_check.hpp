// Whether the images that will be scored can be: a damaged one should be found before days of
// training and not after them.
#pragma once

#include <functional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/run/dataset.hpp"

namespace chexnet {

// Decodes every image of the validation split and of eval.splits once, each on one rank; the
// training images are seen soon enough. DataError on all ranks as data.corrupt and
// data.corrupt_limit say; HangError when a rank makes no progress for launch.timeout_s. `looked_at`
// of a resumed run says what was looked at by an earlier start, which is not done again; it becomes
// what has been looked at now. `stop` is asked on every rank meanwhile; where any rank says yes,
// all return false soon, with `looked_at` as it was. Collective.
bool check_splits(const Config& config, const Dataset& dataset, Communicator& comm, int threads,
                  const std::function<bool()>& stop, std::string& looked_at);

}  // namespace chexnet
