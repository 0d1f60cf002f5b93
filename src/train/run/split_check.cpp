// Rank r of R decodes images r, r + R, … with its threads and throws the pixels
// away. It costs a minute on ten thousand images, and spares a run that ends
// after days in its first evaluation. Rule and limit for damaged images are
// those of the evaluation itself (data/damage.hpp).
#include "chexnet/train/run/split_check.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <mutex>
#include <optional>
#include <vector>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/data/damage.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/train/run/eval_batch.hpp"

namespace chexnet {
namespace {

std::vector<const Split*> scored_splits(const Config& config,
                                        const Splits& splits) {
  std::vector<const Split*> scored;
  const auto& names = config.eval.splits;
  if (!splits.val.rows.empty()) scored.push_back(&splits.val);
  if (!splits.test.rows.empty() &&
      std::ranges::find(names, SplitName::kTest) != names.end())
    scored.push_back(&splits.test);
  return scored;
}

// The same for the same images under the same rule.
std::string identity(const Config& config,
                     const std::vector<const Split*>& splits) {
  std::string text = config.data.corrupt.skip ? "skip" : "fail";
  for (const Split* split : splits)
    text += " " + split->name + " " + split->sha256;
  return text;
}

// The messages of this rank's damaged images; nothing on all ranks when a stop
// was requested.
std::optional<std::vector<std::string>> damaged_images(
    const Split& split, const ImageReader& reader, Communicator& comm,
    int threads, const SharedWorkOptions& options) {
  const auto ranks = static_cast<size_t>(comm.size()),
             rank = static_cast<size_t>(comm.rank());
  const size_t own = (split.rows.size() + ranks - 1 - rank) / ranks;
  const auto side = static_cast<size_t>(reader.crop());
  std::mutex mutex;  // guards damaged
  std::vector<std::string> damaged;
  std::atomic<size_t> done = 0;
  Progress progress(comm.rank() == 0);
  const double start = now_s();
  const auto look_at = [&](size_t i, WorkProgress& work) {
    thread_local ImageReader::Scratch scratch;
    thread_local std::vector<uint8_t> pixels;
    pixels.resize(side * side);
    try {
      reader.read({.row = split.rows[i * ranks + rank]}, pixels.data(),
                  scratch);
    } catch (const DataError& e) {
      const std::lock_guard lock(mutex);
      damaged.emplace_back(e.what());
    }
    ++done;
    work.advance();
  };
  const auto show = [&] {
    const double share = static_cast<double>(done) /
                         static_cast<double>(std::max<size_t>(1, own));
    progress.show("looking at the " + split.name +
                  " images: " + percent_and_time_left(share, now_s() - start));
  };
  const bool whole = share_work(comm, options, [&](WorkProgress& work) {
    parallel_for(
        own, threads, [&](size_t i) { look_at(i, work); }, show);
  });
  progress.clear();
  if (!whole) return std::nullopt;
  return damaged;
}

}  // namespace

std::optional<std::string> check_splits(const Config& config,
                                        const Dataset& dataset,
                                        Communicator& comm,
                                        const SplitCheck& check) {
  assert(check.threads > 0);
  const auto splits = scored_splits(config, dataset.splits);
  for (const Split* split : splits)
    check_eval_batch(config, *split, 1, comm, check.on_host);
  const std::string wanted = identity(config, splits);
  if (check.looked_at == wanted) return wanted;
  const ImageReader reader(*dataset.images,
                           evaluation_preprocessing(config.data),
                           Augmentation::none(), 0);
  // On an object store most of a thread's time is waiting.
  const int readers = std::max(check.threads, dataset.images->wanted_readers());
  const SharedWorkOptions options{"looking at the images that are scored",
                                  config.launch.timeout_s, check.stop};
  for (const Split* split : splits) {
    const auto own = damaged_images(*split, reader, comm, readers, options);
    if (!own) return std::nullopt;
    const auto damaged =
        count(accept_damage(DamagePolicy::of(config.data), *own,
                            split->rows.size(), split->name, "", comm));
    if (damaged > 0 && comm.rank() == 0)
      log_warning(
          "[" + split->name + "] " + std::to_string(damaged) + " of " +
          std::to_string(split->rows.size()) +
          " images are damaged and will not be scored (data.corrupt=skip)");
  }
  return wanted;
}

}  // namespace chexnet
