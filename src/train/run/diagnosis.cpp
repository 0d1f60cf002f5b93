// The order of the tests matters. A loader that is too slow hides everything
// behind it, so it comes first; reading is told from decoding by leaving the
// decoding out. Of what computes, the copy is looked at before the gradients,
// since a rank that copies late also makes others wait.
#include "chexnet/train/run/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr double kReadGain = 1.3, kShare = 0.1;

std::string rate(double images_per_s) {
  return fixed(images_per_s, 0) + " images/s";
}

const std::vector<std::string>& disk_advice() {
  static const std::vector<std::string> text = {
      "data.stage: auto, or a local disk by name (packs, shards and archives "
      "are copied once)",
      "chexnet-train pack: one large file instead of many small ones",
      "data.readers: 16 or more, so that many reads are in flight"};
  return text;
}

std::vector<std::string> decode_advice(int workers) {
  std::vector<std::string> text;
  if (workers > 0)
    text.push_back("data.workers: " + std::to_string(workers) + " (or auto)");
  text.emplace_back(
      "chexnet-train pack --format pixels: images decoded and resized once, "
      "then read at memory "
      "speed");
  text.emplace_back(
      "more cores per rank (OMP_NUM_THREADS, -c of Slurm, ncpus of PBS)");
  return text;
}

const std::vector<std::string>& communication_advice() {
  static const std::vector<std::string> text = {
      "launch.gradient_compression: bf16, which halves what travels",
      "launch.bucket_mb: 2 to 8, so that more of it hides behind backward",
      "a larger train.batch, so that there is less of it per image"};
  return text;
}

const std::vector<std::string>& compute_advice() {
  static const std::vector<std::string> text = {
      "nothing to gain from the loader",
      "train.precision: bf16 or fp16 on a GPU; a larger train.batch while "
      "memory lasts",
      "more ranks"};
  return text;
}

}  // namespace

const char* limit_name(Limit limit) {
  switch (limit) {
    case Limit::kDisk:
      return "disk";
    case Limit::kDecode:
      return "decode";
    case Limit::kCopy:
      return "copy";
    case Limit::kCompute:
      return "compute";
    case Limit::kCommunication:
      return "communication";
  }
  return "";
}

LimitReport limit_of(const StageRates& r) {
  const double compute = std::max({r.same_batch, r.no_copy, r.alone});
  const int workers =
      r.load_one > 0
          ? static_cast<int>(std::ceil(1.1 * r.same_batch / r.load_one))
          : 0;
  if (r.load > 0 && r.load < (1 + kShare) * r.same_batch) {
    if (r.read < kReadGain * r.load)
      return {Limit::kDisk,
              "loading reaches " + rate(r.load) + " and " + rate(r.read) +
                  " without preprocessing, so reading is what takes the time; "
                  "the network could "
                  "take " +
                  rate(r.same_batch),
              disk_advice(), workers};
    return {Limit::kDecode,
            "loading reaches " + rate(r.load) + ", without preprocessing " +
                rate(r.read) + "; the network could take " + rate(r.same_batch),
            decode_advice(workers), workers};
  }
  if (r.no_copy > 0 && r.same_batch < (1 - kShare) * r.no_copy)
    return {Limit::kCopy,
            "the same batch gives " + rate(r.same_batch) + ", and " +
                rate(r.no_copy) + " when it is on the GPU already",
            {"check that the GPU has all its PCIe lanes (chexnet-train bench "
             "step, nvidia-smi -q)",
             "bind the rank to the GPU's socket"},
            workers};
  const double with_others = r.no_copy > 0 ? r.no_copy : r.same_batch;
  if (r.alone > 0 && with_others < (1 - kShare) * r.alone)
    return {Limit::kCommunication,
            "computing gives " + rate(with_others) +
                " with gradients from the other ranks and " + rate(r.alone) +
                " without",
            communication_advice(), workers};
  std::string reason = "the same batch again gives " + rate(compute) +
                       ", the whole run " + rate(r.whole) +
                       ", and loading alone " + rate(r.load);
  if (r.shared_cores) reason += "; loader and network share the cores";
  return {Limit::kCompute, reason, compute_advice(), workers};
}

LimitReport limit_of(const WaitShares& s) {
  const std::string shares =
      "waiting for data took " + fixed(100 * s.data, 1) + " % of the time (" +
      counted(s.stalls, "stall") + " in " + counted(s.steps, "step") +
      "), for gradients " + fixed(100 * s.allreduce, 1) + " %";
  if (s.data > kShare && s.data >= s.allreduce) {
    std::vector<std::string> advice = {
        "chexnet-train bench run CONFIG tells disk from decode by measuring "
        "both"};
    for (const auto& text : decode_advice(0)) advice.push_back(text);
    return {Limit::kDecode, shares, advice, 0};
  }
  if (s.allreduce > kShare)
    return {Limit::kCommunication, shares, communication_advice(), 0};
  return {Limit::kCompute, shares, compute_advice(), 0};
}

}  // namespace chexnet
