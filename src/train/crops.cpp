#include "crops.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "chexnet/data/image/crop.hpp"
#include "chexnet/eval/ensemble.hpp"
#include "chexnet/eval/logit.hpp"
#include "chexnet/train/score_images.hpp"

namespace chexnet {

Crops::Crops(EvalCrops crops, const DataConfig& data)
    : crops_(crops), preprocessing_(evaluation_preprocessing(data)) {}

Preprocessing Crops::of_reader() const {
  Preprocessing delivered = preprocessing_;
  if (crops_ == EvalCrops::kTen) delivered.crop = delivered.resize;
  return delivered;
}

at::Tensor Crops::logits(Network& network, const at::Tensor& images) const {
  std::vector<at::Tensor> all;
  // A copy: the next pass may use the same memory.
  const auto add = [&](const at::Tensor& crop) {
    all.push_back(network.forward(crop, Mode::kInference)
                      .to(at::kDouble, /*non_blocking=*/false, /*copy=*/true));
  };
  const auto add_mirrored = [&](const at::Tensor& crop) {
    add(crop.flip({3}).contiguous());
  };
  if (crops_ != EvalCrops::kTen) {
    add(images);
    if (crops_ == EvalCrops::kOne) return all.front().unsqueeze(0);
    add_mirrored(images);
    return at::stack(all);
  }
  const int64_t size = preprocessing_.crop;
  const int64_t far = preprocessing_.resize - preprocessing_.crop;
  const int64_t center =
      center_crop_begin(preprocessing_.resize, preprocessing_.crop);
  using Corner = std::pair<int64_t, int64_t>;
  for (const auto& [y, x] : {Corner(0, 0), Corner(0, far), Corner(far, 0),
                             Corner(far, far), Corner(center, center)}) {
    const at::Tensor crop =
        images.narrow(2, y, size).narrow(3, x, size).contiguous();
    add(crop);
    add_mirrored(crop);
  }
  return at::stack(all);
}

namespace {

// Of logits that stand `stride` numbers apart. In the order of crops and by the
// C library's exp, not ATen's vectors: so the sum does not depend on an image's
// index in the batch.
double logit_of_crops(const double* logits, size_t crops, size_t stride) {
  if (crops == 1) return *logits;
  // log(p / (1 - p)) of the mean p; 1 - p is summed by itself, as it may be
  // far below the last bit of 1.
  double positive = 0, negative = 0;
  for (size_t c = 0; c < crops; ++c) {
    positive += probability_of(logits[c * stride]);
    negative += probability_of(-logits[c * stride]);
  }
  return std::log(positive) - std::log(negative);
}

}  // namespace

void append_means(const at::Tensor& logits, size_t i,
                  std::vector<double>& line) {
  const auto members = static_cast<size_t>(logits.size(0));
  const auto crops = static_cast<size_t>(logits.size(1));
  const auto images = static_cast<size_t>(logits.size(2));
  const auto findings = static_cast<size_t>(logits.size(3));
  const size_t stride = images * findings;
  const auto* values = logits.const_data_ptr<double>() + i * findings;
  std::vector<double> of_members(members), spreads;
  for (size_t k = 0; k < findings; ++k) {
    for (size_t m = 0; m < members; ++m)
      of_members[m] =
          logit_of_crops(values + m * crops * stride + k, crops, stride);
    const MemberMean mean = mean_of_members(of_members);
    line.push_back(mean.logit);
    if (members > 1) spreads.push_back(mean.spread);
  }
  line.insert(line.end(), spreads.begin(), spreads.end());
}

}  // namespace chexnet
