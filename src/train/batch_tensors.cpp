// The batch knows its shape by the sizes of its two arrays alone: S from the
// pixels of an image, K from the labels of one.
#include "batch_tensors.hpp"

#include <ATen/ATen.h>

#include <cassert>
#include <cmath>

namespace chexnet {

BatchTensors tensors_of(const Batch& batch) {
  assert(batch.size > 0);
  const int64_t images = batch.size;
  const auto pixels = static_cast<int64_t>(batch.images.size()) / images;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(pixels)));
  assert(images * side * side == static_cast<int64_t>(batch.images.size()));
  const auto findings = static_cast<int64_t>(batch.labels.size()) / images;
  assert(images * findings == static_cast<int64_t>(batch.labels.size()));

  // LibTorch knows no tensors of constant memory.
  auto* labels = const_cast<float*>(batch.labels.data());
  BatchTensors tensors{
      at::from_blob(batch.images.data(), {images, 1, side, side}, at::kByte),
      at::from_blob(labels, {images, findings}, at::kFloat)};
  assert(batch.sample_weights.empty() ||
         static_cast<int64_t>(batch.sample_weights.size()) == images);
  if (!batch.sample_weights.empty())
    tensors.sample_weights =
        at::from_blob(const_cast<float*>(batch.sample_weights.data()),
                      {images, 1}, at::kFloat);
  return tensors;
}

}  // namespace chexnet
