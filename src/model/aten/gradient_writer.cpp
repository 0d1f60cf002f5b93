// The first micro-batch stores and the others add, so nothing is set to zero
// between two steps. A group is reported only when all of it is copied, in the
// order in which it came: then all below each end is complete.
#include "gradient_writer.hpp"

#include <ATen/ATen.h>

#include <cassert>
#include <utility>

namespace chexnet {
namespace {

// Of a group: small against a bucket (launch.bucket_mb), so that a bucket does
// not wait long for the group of its last gradient.
constexpr size_t kGroupBytes = size_t{1} << 20;

}  // namespace

void GradientWriter::add(int id, at::Tensor gradient,
                         const MicroBatch& micro_batch) {
  assert(gradient.numel() == parameters_.gradient(id).numel());
  bytes_ += gradient.nbytes();
  ids_.push_back(id);
  gradients_.push_back(std::move(gradient));
  if (bytes_ >= kGroupBytes) flush(micro_batch);
}

// One call takes sources of one type: a network in 16 bits has two, as
// BatchNorm's gradients are fp32.
void GradientWriter::copy(at::ScalarType type, const MicroBatch& micro_batch) {
  std::vector<at::Tensor> from, to;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (gradients_[i].scalar_type() != type) continue;
    from.push_back(gradients_[i]);
    to.push_back(parameters_.gradient(ids_[i]));
  }
  if (from.empty()) return;
  if (micro_batch.first()) {
    at::_foreach_copy_(to, from);
    return;
  }
  // Of two types it would add one gradient at a time.
  if (type != to.front().scalar_type()) {
    std::vector<at::Tensor> widened;
    for (const auto& gradient : to) widened.push_back(at::empty_like(gradient));
    at::_foreach_copy_(widened, from);
    from = std::move(widened);
  }
  at::_foreach_add_(to, from);
}

void GradientWriter::flush(const MicroBatch& micro_batch) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf})
    copy(type, micro_batch);
  const std::vector<int> ids = std::exchange(ids_, {});
  clear();
  for (const int id : ids) micro_batch.written(parameters_.end_of(id));
}

void GradientWriter::clear() {
  ids_.clear();
  gradients_.clear();
  bytes_ = 0;
}

}  // namespace chexnet
