// On CPUs the plan's bytes grow with the batch, so the largest that fits is
// found by bisection. On GPUs cuDNN's memory cannot be planned, so steps are
// tried. Ranks may have different memory: the smallest answer counts (as the
// maximum of negative numbers, for ReduceOp has no minimum).
#include "chexnet/train/auto_batch.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "chexnet/core/error.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/train/run/recipe.hpp"
#include "chexnet/train/run/run_decisions.hpp"
#include "device_deadline.hpp"

namespace chexnet {

namespace {

constexpr double kShare = 0.9;  // the rest for libraries, files and the system
constexpr double kOptimizerSlots = 2;

double optimizer_bytes(const Network& network) {
  return kOptimizerSlots *
         static_cast<double>(network.parameters().flat_values().nbytes());
}

// The smallest of all ranks' values. Collective.
double smallest_of_all(Communicator& comm, double mine) {
  double negative = -mine;
  comm.all_reduce(std::span(&negative, 1), ReduceOp::kMax);
  return -negative;
}

void require_one_image(int64_t found, double budget,
                       const std::string& remedy) {
  if (found > 0) return;
  throw ConfigError(
      "[train] not even one image per rank fits into {}. Hint: {}, or a "
      "smaller data.crop",
      readable_bytes(std::max(budget, 0.0)), remedy);
}

// Images that a rank computes at once, by the engine's plan.
int64_t planned_images(const Config& config, const Network& network,
                       Communicator& comm, const BatchLimits& limits,
                       int64_t most) {
  const int64_t side = config.data.crop;
  if (!network.planned_bytes(1, side))
    throw ConfigError(
        "[train] train.batch: auto needs the memory plan of our own engine, "
        "which does not compute "
        "here. Hint: name a number");
  constexpr double kRingBatches = 8;  // of bytes, in the loader
  const double budget = kShare * static_cast<double>(limits.host_bytes) /
                            comm.world().local_size -
                        optimizer_bytes(network);
  const auto fits = [&](int64_t micro_batch) {
    const auto ring =
        kRingBatches * static_cast<double>(
                           micro_batch * config.train.accumulate * side * side);
    return static_cast<double>(*network.planned_bytes(micro_batch, side)) +
               ring <=
           budget;
  };
  int64_t low = 0, high = most;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  const auto found =
      static_cast<int64_t>(smallest_of_all(comm, static_cast<double>(low)));
  require_one_image(found, budget, "fewer ranks on this host");
  return found;
}

// Of a forward and a backward pass beside what is allocated now.
std::optional<double> bytes_of_step(Network& network, CudaLibrary& cuda,
                                    DeviceDeadline& deadline, int64_t images,
                                    int64_t side) {
  const auto wait = deadline.wait();
  const auto step = [&] {
    cuda.restart_peak();
    const size_t before = cuda.peak_held_bytes();
    const at::Tensor pixels = at::zeros(
        {images, 1, side, side},
        at::TensorOptions().dtype(at::kByte).device(network.options().device));
    const at::Tensor logits = network.forward(pixels, Mode::kTraining);
    network.backward(at::zeros_like(logits));
    cuda.synchronize();
    return static_cast<double>(cuda.peak_held_bytes() - before);
  };
  try {
    // In the first step of a shape cuDNN tries its algorithms, with as much
    // memory as there is.
    step();
    return step();
  } catch (const c10::OutOfMemoryError&) {
    return std::nullopt;
  }
}

// Images that a rank computes at once, by measuring. Ranks measure together
// and take the worst, because BatchNorm may be shared between them.
int64_t measured_images(const Config& config, Network& network,
                        Communicator& comm, CudaLibrary& cuda, int64_t most) {
  DeviceDeadline deadline(network.options().device, config.launch.timeout_s,
                          "a step of train.batch: auto");
  cuda.restart_peak();
  const double budget = kShare * static_cast<double>(cuda.free_bytes()) -
                        optimizer_bytes(network);
  constexpr double kTooMuch = std::numeric_limits<double>::max();
  const auto share = [&](int64_t images) -> std::optional<double> {
    double bytes =
        bytes_of_step(network, cuda, deadline, images, config.data.crop)
            .value_or(kTooMuch);
    if (bytes > budget) bytes = kTooMuch;
    comm.all_reduce(std::span(&bytes, 1), ReduceOp::kMax);
    if (bytes == kTooMuch) return std::nullopt;
    return bytes;
  };
  // The worst rank's figures give a line; where it meets the smallest budget is
  // the batch.
  const int64_t found =
      largest_step(share, smallest_of_all(comm, budget), most);
  cuda.restart_peak();
  require_one_image(found, budget, "another process may be on the GPU");
  return found;
}

// One value has a variance of 0, and running variances of 0 make every
// evaluation overflow. PyTorch refuses to train on it, too.
void check_batchnorm_values(const Config& config, int64_t batch, int ranks) {
  if (config.model.always_frozen() == FrozenPart::kBackbone) return;
  const int64_t side = last_map_side(network_spec(config.model.arch),
                                     static_cast<int>(config.data.crop));
  if (side * side * images_per_batchnorm(config, batch, ranks) > 1) return;
  throw ConfigError(
      "[train] data.crop = {} leaves one pixel of an image, and each BatchNorm "
      "sees one image: it has one value per channel, and no variance. Hint: a "
      "larger data.crop, train.batch = {} or more, or "
      "model.sync_batchnorm=true on several ranks",
      config.data.crop, int64_t{2} * ranks * config.train.accumulate);
}

}  // namespace

int64_t largest_step(const MeasureStep& measure, double budget, int64_t most) {
  assert(most > 0);
  const auto fits = [&](int64_t images) {
    const auto bytes = measure(images);
    return bytes && *bytes <= budget;
  };
  constexpr int64_t kSmall = 4, kDouble = 2 * kSmall;
  const auto small = measure(std::min(kSmall, most));
  if (most <= kSmall || !small || *small > budget) {
    for (int64_t images = std::min(kSmall, most); images > 0; --images)
      if (fits(images)) return images;
    return 0;
  }
  int64_t guess = std::min(kDouble, most) - 1;
  const auto twice = measure(std::min(kDouble, most));
  if (twice && *twice <= budget) {
    const int64_t more = std::min(kDouble, most) - kSmall;
    const double slope =
        std::max(1.0, (*twice - *small) / static_cast<double>(more));
    const double there = kSmall + (budget - *small) / slope;
    guess =
        there < static_cast<double>(most) ? static_cast<int64_t>(there) : most;
  }
  // For libraries that take more for a larger step than the line says.
  for (int64_t images = guess; images > kSmall;
       images -= std::max<int64_t>(1, images / 16))
    if (fits(images)) return images;
  return kSmall;
}

int64_t images_that_fit(const Config& config, Network& network,
                        CudaLibrary& cuda, int64_t most) {
  DeviceDeadline deadline(network.options().device, config.launch.timeout_s,
                          "a step that is measured");
  cuda.restart_peak();
  const double budget = kShare * static_cast<double>(cuda.free_bytes());
  return largest_step(
      [&](int64_t images) {
        return bytes_of_step(network, cuda, deadline, images, config.data.crop);
      },
      budget, most);
}

int64_t auto_batch(const Config& config, Network& network, Communicator& comm,
                   const BatchLimits& limits) {
  assert(limits.images > 0);
  const int64_t pieces = comm.size() * config.train.accumulate;
  const auto most = std::max<int64_t>(limits.images / pieces, 1);
  return pieces *
         (limits.cuda != nullptr
              ? measured_images(config, network, comm, *limits.cuda, most)
              : planned_images(config, network, comm, limits, most));
}

int64_t choose_batch(const RunContext& run, int64_t chosen_before) {
  const Config& config = run.config;
  int64_t batch = config.train.batch.value_or(chosen_before);
  if (batch <= 0)
    batch =
        auto_batch(config, run.network, run.comm,
                   {static_cast<int64_t>(run.dataset.splits.train.rows.size()),
                    available_memory_bytes(), run.device.cuda});
  check_batch(config.train, batch, run.comm.size());
  check_batchnorm_values(config, batch, run.comm.size());
  return batch;
}

}  // namespace chexnet
