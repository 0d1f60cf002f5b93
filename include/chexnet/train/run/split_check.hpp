// Whether the images that will be scored can be: a damaged one should be found
// before days of training and not after them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/train/run/dataset.hpp"

namespace chexnet {

struct SplitCheck {
  // Checked by an earlier start of the resumed run; not done again.
  std::string looked_at;
  int threads = 1;
  bool on_host = true;         // they are scored in the host's memory
  std::function<bool()> stop;  // called on every rank meanwhile
};

// Decodes every image of the validation split and of eval.splits once, each on
// one rank; the training images are seen soon enough. DataError on all ranks as
// data.corrupt says; HangError when a rank makes no
// progress for launch.timeout_s; ConfigError as check_eval_batch(). Returns
// what it checked; where any rank wants to stop all return nothing, soon.
// Collective.
std::optional<std::string> check_splits(const Config& config,
                                        const Dataset& dataset,
                                        Communicator& comm,
                                        const SplitCheck& check);

}  // namespace chexnet
