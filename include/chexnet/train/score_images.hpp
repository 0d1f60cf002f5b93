// Logits of a split's images, each once on any number of ranks. Every forward
// pass has the same shape (the tail is padded and dropped), so a logit does not
// depend on which rank computed it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "chexnet/data/split.hpp"
#include "chexnet/train/run_context.hpp"

namespace chexnet {

// An image of the split.
struct ImageLogits {
  size_t index = 0;  // in the split's rows
  // [K], valid during the call; empty where the image could not be scored.
  std::span<const double> logits = {};
  // [K], the same, of an ensemble alone: mean_of_members().
  std::span<const double> spreads = {};
  std::string error = {};  // why it could not, without a hint
  // What is odd about one that was scored (data/picture_note.hpp), where the
  // request asks for it.
  std::string note = {};
};

struct ScoringRequest {
  // Every rank calls it before each batch; where any says yes, all end.
  std::function<bool()> stop;
  // Called on every rank, for each image in the split's order, as soon as all
  // ranks have scored the batch that it is in.
  std::function<void(const ImageLogits&)> take;
  // Images that cannot be read (permissions, links) are reported as damaged
  // ones are; else such a one ends the scoring (AbsentError).
  bool absent_is_damage = false;
  bool notes = false;
  bool progress = true;  // a line on stderr
};

// Collective. False on all ranks when it was stopped. A damaged image follows
// data.corrupt: DataError on all ranks at the end, or it
// is not scored. NumericError on all ranks, at the end, when a logit is not
// finite. With eval.crops above 1 the probability of an image is the mean over
// its crops, and its logit that of this mean.
bool score_images(const RunContext& run, const Split& split,
                  const ScoringRequest& request);

}  // namespace chexnet
