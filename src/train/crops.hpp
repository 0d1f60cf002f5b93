// eval.crops: which parts of a picture an evaluation looks at.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/model/network.hpp"

namespace chexnet {

class Crops {
 public:
  // One: the center. Two: the center and its mirror image. Ten: the corners,
  // the center, and the mirror images of these five (Krizhevsky, Sutskever and
  // Hinton, NIPS 2012; torchvision's TenCrop).
  Crops(EvalCrops crops, const DataConfig& data);

  // What the loader delivers: the center crop, or the picture at the size that
  // ten crops are cut from.
  Preprocessing of_reader() const;
  // images: uint8 [N,1,S,S] as the loader delivers them, on the network's
  // device. Returns double [crops, N, K].
  at::Tensor logits(Network& network, const at::Tensor& images) const;

 private:
  EvalCrops crops_;
  Preprocessing preprocessing_;
};

// Of image `i` of `logits` (double [members, crops, N, K] of the host): appends
// K logits, the means of the members', and of several members then K spreads
// (mean_of_members()). A member's logit is of one crop as it is, of several
// that of their mean probability.
void append_means(const at::Tensor& logits, size_t i,
                  std::vector<double>& line);

}  // namespace chexnet
