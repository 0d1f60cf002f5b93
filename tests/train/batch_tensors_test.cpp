#include "train/batch_tensors.hpp"

#include <ATen/ATen.h>

#include <numeric>

#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("a batch's tensors have its shape and are its own memory") {
  std::vector<uint8_t> pixels(2 * 3 * 3);
  std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  Batch batch;
  batch.size = 2;
  batch.images = pixels;
  batch.labels = {1, 0, NAN, 0, 1, 0, 1, 1};
  const BatchTensors tensors = tensors_of(batch);
  CHECK(tensors.images.sizes() == at::IntArrayRef{2, 1, 3, 3});
  CHECK(tensors.images.scalar_type() == at::kByte);
  CHECK(tensors.images[1][0][2][1].item<int>() == 9 + 2 * 3 + 1);
  CHECK(tensors.labels.sizes() == at::IntArrayRef{2, 4});
  CHECK(std::isnan(tensors.labels[0][2].item<float>()));
  CHECK(tensors.labels[1][0].item<float>() == 1);
  CHECK(tensors.images.data_ptr() == pixels.data());
  CHECK(tensors.labels.data_ptr() == batch.labels.data());
  CHECK_FALSE(tensors.sample_weights.defined());
  batch.sample_weights = {1, 0.5f};
  CHECK(tensors_of(batch).sample_weights.sizes() == at::IntArrayRef{2, 1});
  CHECK(tensors_of(batch).sample_weights[1].item<float>() == 0.5f);
}
