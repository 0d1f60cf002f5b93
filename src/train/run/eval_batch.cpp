#include "chexnet/train/run/eval_batch.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// The stem's map of an image, in the 16 bits of the smallest type: 64 channels
// of half the side. A network needs more, so a batch that this refuses cannot
// work.
constexpr uint64_t kChannels = 64, kBytes = 2;

uint64_t least_bytes(uint64_t side) {
  return kChannels * kBytes * (side / 2) * (side / 2);
}

// Nobody would notice the waste in passes up to this size.
constexpr uint64_t kSmallBatch = 32;

}  // namespace

std::string no_room_for(const EvalPass& pass) {
  const uint64_t each =
      std::max<uint64_t>(1, pass.networks * least_bytes(pass.side));
  if (pass.free_bytes == 0 || pass.batch <= pass.free_bytes / each) return "";
  return formatted(
      "eval.batch={}: a forward pass of so many images of {} x {}{} needs more "
      "than {}, and {} are free here. Hint: eval.batch={}",
      pass.batch, pass.side, pass.side,
      pass.networks > 1 ? formatted(" through {} networks", pass.networks) : "",
      readable_bytes(static_cast<double>(pass.batch * each)),
      readable_bytes(static_cast<double>(pass.free_bytes)),
      std::clamp<uint64_t>(pass.free_bytes / each, 1, kSmallBatch));
}

std::string padding_of(const EvalPass& pass) {
  const uint64_t wanted = std::max<uint64_t>(1, pass.images_per_rank);
  if (pass.batch <= kSmallBatch || pass.batch / 2 < wanted) return "";
  return formatted(
      "eval.batch={}: a forward pass computes so many images, and a rank has "
      "{}; the others are padding, which takes as long. Hint: eval.batch={}",
      pass.batch, wanted, std::min(wanted, kSmallBatch));
}

void check_eval_batch(const Config& config, const Split& split, size_t networks,
                      const Communicator& comm, bool on_host) {
  if (split.rows.empty()) return;
  const auto ranks = static_cast<size_t>(comm.size());
  const auto local = static_cast<uint64_t>(comm.world().local_size);
  const EvalPass pass{
      .batch = static_cast<uint64_t>(config.eval.batch),
      .side = static_cast<uint64_t>(config.data.crop),
      .images_per_rank = (split.rows.size() + ranks - 1) / ranks,
      .networks = networks,
      .free_bytes = on_host ? available_memory_bytes() / local : 0};
  if (const auto text = no_room_for(pass); !text.empty())
    throw ConfigError("[evaluate] {}", text);
  if (const auto text = padding_of(pass); !text.empty() && comm.rank() == 0)
    log_warning("[evaluate] " + text);
}

}  // namespace chexnet
