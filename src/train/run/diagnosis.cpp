// The order of the tests matters. A loader that is too slow hides everything
// after it, so it comes first; reading is told from decoding by leaving the
// decoding out. Within computing, the copy is tested before the gradients,
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

// "2.4 x"
std::string times(double factor) { return fixed(factor, 1) + " x"; }

// The parts of a run, each of which is measured without the one before it. None
// can be slower than what holds it, but for the noise of a measurement.
std::string contradiction(const StageRates& r) {
  constexpr double kNoise = 1.3;
  struct Pair {
    const char* whole_name;
    double whole;
    const char* part_name;
    double part;
  };
  const double with_others = r.no_copy > 0 ? r.no_copy : r.same_batch;
  for (const Pair& p :
       {Pair{"the run", r.whole, "the same batch again", with_others},
        Pair{"the run", r.whole, "loading alone", r.load},
        Pair{"loading", r.load, "reading alone", r.read},
        Pair{"the same batch", r.same_batch, "it without the copy", r.no_copy},
        Pair{"computing", with_others, "it without gradients of others",
             r.alone}})
    if (p.part > 0 && p.whole > kNoise * p.part)
      return std::string(p.whole_name) + " reaches " + rate(p.whole) +
             ", and " + p.part_name + ", a part of it, only " + rate(p.part);
  if (r.load <= 0 || r.same_batch <= 0) return "";
  const double in_turn = 1 / (1 / r.load + 1 / r.same_batch);
  if (r.whole > 0 && r.whole < in_turn / 2)
    return "the run reaches " + rate(r.whole) +
           ", and loading and computing one after the other " + rate(in_turn);
  return "";
}

std::vector<std::string> reading_advice(const StageRates& r) {
  return {"reading must become " + times((1 + kShare) * r.same_batch / r.read) +
              " as fast: data.stage: auto, or a local disk by name (packs, "
              "shards and archives are copied once)",
          "chexnet-train pack: one large file instead of many small ones",
          "data.readers: 16 or more, so that many reads are in flight"};
}

std::vector<std::string> worker_advice(const StageRates& r, int workers) {
  if (workers <= r.workers) return {};
  return {"data.workers: " + std::to_string(workers) +
          ", each with a core: one loads " + rate(r.load_one) + ", and " +
          std::to_string(r.workers) + " did so here"};
}

std::vector<std::string> communication_advice(const std::string& gain,
                                              bool shared_cores = false) {
  if (shared_cores)
    return {gain +
                ": the ranks share this host's cores and memory, so fewer "
                "of them (--ranks) with more threads each (launch.threads)",
            "a larger train.batch, so that there is less of it per image"};
  return {gain +
              ": launch.gradient_compression: bf16 halves what travels, and "
              "launch.bucket_mb: 2 to 8 hides more of it behind backward",
          "a larger train.batch, so that there is less of it per image"};
}

std::vector<std::string> compute_advice(const StageRates& r) {
  std::vector<std::string> text;
  if (r.load > 0)
    text.push_back("nothing to gain from the loader, which gives " +
                   times(r.load / r.same_batch) + " what a rank takes");
  if (r.no_copy > 0)
    text.emplace_back(
        "train.precision: bf16 or fp16; a larger train.batch while memory "
        "lasts");
  text.emplace_back(r.shared_cores ? "more cores, or ranks on more hosts"
                                   : "more ranks");
  return text;
}

}  // namespace

const char* limit_name(Limit limit) {
  switch (limit) {
    case Limit::kUnknown:
      return "unknown";
    case Limit::kData:
      return "data";
    case Limit::kDisk:
      return "disk";
    case Limit::kNetwork:
      return "network";
    case Limit::kDecode:
      return "decode";
    case Limit::kAugmentation:
      return "augmentation";
    case Limit::kCopy:
      return "copy";
    case Limit::kCompute:
      return "compute";
    case Limit::kCommunication:
      return "communication";
  }
  return "";
}

namespace {

// Of a loader that is slower than computing.
LimitReport loading_limit(const StageRates& r, int workers) {
  const std::string load = "loading reaches " + rate(r.load),
                    network = "the network could take " + rate(r.same_batch);
  if (r.read < kReadGain * r.load)
    return {r.over_network ? Limit::kNetwork : Limit::kDisk,
            load + " and " + rate(r.read) +
                " without preprocessing, so reading is what takes the time; " +
                network,
            reading_advice(r), workers};
  std::vector<std::string> advice = worker_advice(r, workers);
  if (r.load_plain > kReadGain * r.load) {
    advice.emplace_back(
        "data.rotate_deg, data.zoom and data.contrast: what is 0 takes no "
        "time");
    return {Limit::kAugmentation,
            load + ", and " + rate(r.load_plain) +
                " where nothing is augmented; " + network,
            advice, workers};
  }
  advice.push_back(
      "chexnet-train pack --format pixels: images decoded and resized once; "
      "reading alone gives " +
      rate(r.read));
  return {Limit::kDecode,
          load + ", without preprocessing " + rate(r.read) + "; " + network,
          advice, workers};
}

}  // namespace

LimitReport limit_of(const StageRates& r) {
  const int workers =
      r.load_one > 0
          ? static_cast<int>(std::ceil(1.1 * r.same_batch / r.load_one))
          : 0;
  if (const std::string why = contradiction(r); !why.empty())
    return {Limit::kUnknown,
            why + ": these figures contradict each other",
            {"measure again while nothing else runs on this machine, with "
             "--steps 20"}};
  const double enough = r.workers == 0 ? 1 / kShare : 1 + kShare;
  if (r.load > 0 && r.load < enough * r.same_batch)
    return loading_limit(r, workers);
  const double less = std::min(1 - kShare, 1 / (1 + r.noise));
  // A run copies beside computing: what it hides limits nothing.
  if (r.no_copy > 0 && r.same_batch < less * r.no_copy &&
      r.whole < less * r.no_copy)
    return {Limit::kCopy,
            "the same batch gives " + rate(r.same_batch) + ", and " +
                rate(r.no_copy) + " when it is on the GPU already",
            {"check that the GPU has all its PCIe lanes (chexnet-train bench "
             "step, nvidia-smi -q)",
             "bind the rank to the GPU's socket"},
            workers};
  const double with_others = r.no_copy > 0 ? r.no_copy : r.same_batch;
  if (r.alone > 0 && with_others < less * r.alone)
    return {Limit::kCommunication,
            "computing gives " + rate(with_others) +
                " with gradients from the other ranks and " + rate(r.alone) +
                " without",
            communication_advice("without them a rank is " +
                                     times(r.alone / with_others) + " as fast",
                                 r.shared_cores && r.one_host),
            workers};
  std::string reason = "the same batch again gives " + rate(r.same_batch) +
                       ", the whole run " + rate(r.whole) +
                       ", and loading alone " + rate(r.load);
  if (r.shared_cores) reason += "; loader and network share the cores";
  return {Limit::kCompute, reason, compute_advice(r), workers};
}

LimitReport limit_of(const WaitFractions& s) {
  const std::string shares =
      "waiting for data took " + fixed(100 * s.data, 1) + " % of the time (" +
      counted(s.stalls, "stall") + " in " + counted(s.steps, "step") +
      "), for gradients " + fixed(100 * s.allreduce, 1) + " %";
  const auto percent = [](double share) {
    return fixed(100 * share, 0) + " %";
  };
  // Waiting times cannot tell disk from decoding.
  if (s.data > kShare && s.data >= s.allreduce)
    return {Limit::kData,
            shares,
            {"up to " + percent(s.data) +
             " of the time is to gain: chexnet-train bench run CONFIG measures "
             "reading and decoding, and says which of them it is"}};
  if (s.allreduce > kShare && s.slowest_ratio > 1 + kShare)
    return {Limit::kCommunication,
            shares,
            {"rank " + std::to_string(s.slowest_rank) + " takes " +
             fixed(s.slowest_ratio, 2) +
             " x the own time of the median rank, and the others wait for it: "
             "chexnet-train doctor on its host; lines of stragglers name a "
             "cause"}};
  if (s.allreduce > kShare)
    return {Limit::kCommunication, shares,
            communication_advice("up to " + percent(s.allreduce) +
                                 " of the time is to gain")};
  const double waiting = s.data + s.allreduce;
  return {Limit::kCompute,
          shares,
          {waiting < 0.01 ? "nothing to gain from the loader and from "
                            "communication: less than 1 % of the time"
                          : "at most " + percent(waiting) +
                                " of the time is to gain from the loader and "
                                "from communication"}};
}

}  // namespace chexnet
