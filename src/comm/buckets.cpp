// Backward fills the flat buffer from the left, and a bucket travels as soon as
// backward has passed its end:
//
//   | bucket 0 | bucket 1 | bucket 2 |    | last | statistics |
//     on its way            ^ complete to here
//
// An early cut, `only_little_follows`, makes the last one small; the second
// half of that condition keeps the rest one bucket, not one per parameter.
#include "chexnet/comm/buckets.hpp"

#include "chexnet/core/clock.hpp"

namespace chexnet {

std::vector<Bucket> plan_buckets(const TravellingGradients& gradients,
                                 size_t element_size, size_t bucket_bytes,
                                 GradientCompression compression) {
  const auto& [parameters, end, statistics, total] = gradients;
  constexpr size_t kLastShare = 8;
  std::vector<Bucket> buckets;
  const size_t travels = end + (total - statistics);
  bool begins = true;
  for (const Extent& parameter : parameters) {
    if (begins) buckets.push_back({parameter.begin, 0, false});
    Bucket& bucket = buckets.back();
    bucket.end = parameter.end;

    const bool full =
        (bucket.end - bucket.begin) * element_size >= bucket_bytes;
    const size_t rest = (travels - bucket.end) * element_size;
    const bool only_little_follows =
        rest <= bucket_bytes / kLastShare &&
        (travels - bucket.begin) * element_size > bucket_bytes / kLastShare;
    begins = full || only_little_follows;
  }
  if (total > statistics) {
    if (compression == GradientCompression::kNone && !buckets.empty() &&
        end == statistics)
      buckets.back().end = total;
    else
      buckets.push_back({statistics, total, true});
  }
  return buckets;
}

BucketedReducer::BucketedReducer(Communicator& comm,
                                 std::vector<Bucket> buckets, void* flat,
                                 ElementType type)
    : comm_(comm),
      buckets_(std::move(buckets)),
      flat_(static_cast<std::byte*>(flat)),
      type_(type) {}

void BucketedReducer::begin() {
  if (left_over_) {
    comm_.finish();
    while (comm_.wait_until_finished()) continue;
  }
  left_over_ = false;
  next_ = 0;
  active_ = true;
}

void BucketedReducer::start_ready(size_t end) {
  for (; next_ < buckets_.size() && buckets_[next_].end <= end; ++next_) {
    const Bucket& bucket = buckets_[next_];
    comm_.start({flat_ + bucket.begin * element_bytes(type_),
                 bucket.end - bucket.begin, type_, bucket.exact});
  }
}

void BucketedReducer::written_to(size_t end) {
  if (!active_) return;
  start_ready(end);
  comm_.poll();
}

void BucketedReducer::abandon() {
  if (!active_) return;
  active_ = false;
  left_over_ = next_ > 0 && !comm_.is_recording();
}

void BucketedReducer::finish() {
  start_ready(buckets_.empty() ? 0 : buckets_.back().end);
  const double start = now_s();
  comm_.finish();
  wait_s_ = now_s() - start;
  active_ = false;
}

void BucketedReducer::wait_until_finished() {
  if (const auto alone_s = comm_.wait_until_finished()) wait_s_ = *alone_s;
}

}  // namespace chexnet
