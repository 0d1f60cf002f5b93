// What limits a run, decided from measured rates: the tests of Dell's and
// NVIDIA's articles (leave out the preprocessing, use the same batch again,
// leave out the copy, compute alone), as pure functions over their results.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// kUnknown: the figures contradict each other. kData: any of the next four.
enum class Limit {
  kUnknown,
  kData,
  kDisk,
  kNetwork,  // that images are read over
  kDecode,
  kAugmentation,
  kCopy,
  kCompute,
  kCommunication
};
const char* limit_name(Limit limit);  // "disk", "decode", …

// images/s per rank; 0 = not measured.
struct StageRates {
  double whole = 0;  // the run as configured
  double read = 0;   // files read, not decoded, with the loader's threads
  // Read, decoded and augmented with the loader's threads, without computing.
  double load = 0;
  double load_plain = 0;  // the same, nothing augmented
  double load_one = 0;    // the same with one thread
  double same_batch = 0;  // computing on one batch over and over: no loader
  double no_copy = 0;  // the same with the batch already on the GPU; 0 on a CPU
  // The same without gradients from other ranks; 0 for one rank.
  double alone = 0;
  bool shared_cores = false;  // loader and network compute on the same cores
  bool one_host = false;      // holds all ranks
  bool over_network = false;  // images come from a store or file system that is
                              // elsewhere
  // Workers that the loader came to use; 0: the step waits for each image.
  int workers = 1;
  // How far times of a step lie apart: the distance of their quartiles by their
  // median.
  double noise = 0;
};

struct LimitReport {
  Limit limit;
  std::string reason;               // one sentence with the figures it rests on
  std::vector<std::string> advice;  // what to change, most promising first
  int workers = 0;  // loader threads that would keep up; 0 = not known
};
// Unknown where a part is clearly slower than a whole that contains it, or the
// run than its parts one after the other, as on a machine that others use. Else
// the limit is the first of these that holds: loading slower than 1.1 x
// computing (10 x where nothing loads beside it) -> disk or network (leaving
// out the preprocessing gains under 30 %), augmentation (leaving it out gains
// more than that) or decode; the copy takes over 10 % of the step, and more
// than its noise, and the run does not hide it; gradients do; else compute.
LimitReport limit_of(const StageRates& rates);

// From a finished run's metrics: fractions of the time spent waiting.
struct WaitFractions {
  double data = 0, allreduce = 0;
  long stalls = 0, steps = 0;
  // Own time of the slowest rank against the median; 1: not known.
  int slowest_rank = 0;
  double slowest_ratio = 1;
};
LimitReport limit_of(const WaitFractions& fractions);

}  // namespace chexnet
