// How the flat gradient buffer is cut into pieces that travel while backward
// still computes. Gradients are in the order in which backward produces them;
// statistics of BatchNorm follow them in the same buffer and are never
// compressed.
#pragma once

#include <cstddef>
#include <vector>

#include "chexnet/comm/communicator.hpp"

namespace chexnet {

// A parameter's elements of the flat buffer. Elements between two parameters
// are 0.
struct Extent {
  size_t begin = 0, end = 0;
};

struct Bucket {
  size_t begin = 0, end = 0;  // elements of the flat buffer
  bool exact = false;
};

// The parts of the flat buffer to send: parameters, ascending, all below `end`;
// and the statistics, [statistics, total). Between the two lie frozen
// parameters.
struct TravellingGradients {
  std::vector<Extent> parameters;
  size_t end = 0, statistics = 0, total = 0;
};

// Cuts between parameters so that each bucket holds at least `bucket_bytes`,
// but at most an eighth of that is left for the last, because nothing is
// computed while the last one travels. A bucket begins where a parameter does.
// The statistics are part of the last bucket when gradients are not compressed
// and nothing is frozen, a separate bucket otherwise.
std::vector<Bucket> plan_buckets(const TravellingGradients& gradients,
                                 size_t element_size, size_t bucket_bytes,
                                 GradientCompression compression);

// Starts each bucket of `flat` as soon as backward has written past its end.
class BucketedReducer {
 public:
  BucketedReducer(Communicator& comm, std::vector<Bucket> buckets, void* flat,
                  ElementType type);
  void begin();  // before backward of the last micro-batch
  // All elements below `end` are final; also polls.
  void written_to(size_t end);
  // Starts the remaining buckets; then the gradients may be used, see
  // Communicator.
  void finish();
  // The host's wait for a finish(), where gradients are on a device.
  void wait_until_finished();
  // Instead of finish() after a failed step: waits for nothing. The next
  // begin() waits for buckets that were started, which is right where all ranks
  // failed alike; where only some did, the others hang until their deadline, as
  // whenever a rank stays away. Nothing after finish().
  void abandon();
  // Seconds in which the last awaited step did nothing but wait for gradients:
  // the host in finish(), or the device by its own clock.
  double wait_s() const { return wait_s_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Between two steps.
  void set_buckets(std::vector<Bucket> buckets) {
    buckets_ = std::move(buckets);
  }

 private:
  void start_ready(size_t end);
  Communicator& comm_;
  std::vector<Bucket> buckets_;
  std::byte* flat_;
  ElementType type_;
  size_t next_ = 0;
  bool active_ = false;
  bool left_over_ = false;  // started by a step that was abandoned
  double wait_s_ = 0;
};

}  // namespace chexnet
