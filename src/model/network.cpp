#include "chexnet/model/network.hpp"

#include <ATen/ATen.h>

#include "chexnet/core/error.hpp"

namespace chexnet {

Precision precision_of(const std::string& name) {
  if (name == "fp64") return Precision::kFp64;
  if (name == "fp32") return Precision::kFp32;
  if (name == "bf16") return Precision::kBf16;
  if (name == "fp16") return Precision::kFp16;
  throw ConfigError("[model] no precision '" + name + "'. Hint: fp64, fp32, bf16 or fp16");
}
std::string precision_name(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return "fp64";
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "";
}
at::ScalarType master_type(Precision precision) {
  return precision == Precision::kFp64 ? at::kDouble : at::kFloat;
}
at::ScalarType compute_type(Precision precision) {
  if (precision == Precision::kBf16) return at::kBFloat16;
  if (precision == Precision::kFp16) return at::kHalf;
  return master_type(precision);
}

Network::Network(const NetworkSpec& spec, std::int64_t findings, Options options)
    : options_(std::move(options)),
      context_{parameters_, options_.sync_batchnorm,
               // PyTorch's fp64 convolutions know only NCHW; elsewhere channels-last is faster on
               // CPU and GPU.
               options_.precision == Precision::kFp64 ? at::MemoryFormat::Contiguous
                                                      : at::MemoryFormat::ChannelsLast} {
  if (const auto* dense = std::get_if<DenseNetSpec>(&spec.family)) {
    backbone_ = make_densenet(context_, *dense);
    classifier_ = std::make_unique<Classifier>(context_, "classifier", backbone_->channels(),
                                               findings, Init::kZero);
  } else {
    backbone_ = make_resnet(context_, std::get<ResNetSpec>(spec.family));
    classifier_ = std::make_unique<Classifier>(context_, "fc", backbone_->channels(), findings,
                                               Init::kUniformFanIn);
  }
  parameters_.allocate(options_.device, master_type(options_.precision),
                       compute_type(options_.precision));
  const auto channel = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble)
        .to(options_.device, master_type(options_.precision))
        .view({1, 3, 1, 1});
  };
  mean_ = channel(options_.mean);
  std_ = channel(options_.std);
}

at::Tensor Network::normalise(const at::Tensor& images) const {
  const at::Tensor gray = images.to(options_.device, mean_.scalar_type()).div_(255.0);
  return ((gray - mean_) / std_)
      .to(compute_type(options_.precision))
      .contiguous(context_.memory_format);
}

at::Tensor Network::forward(const at::Tensor& images, Mode mode) {
  const Mode backbone_mode = options_.freeze_backbone ? Mode::kInference : mode;
  return classifier_->forward(backbone_->forward(normalise(images), backbone_mode), mode);
}

void Network::backward(const at::Tensor& dlogits) {
  const at::Tensor dy = classifier_->backward(dlogits);
  if (!options_.freeze_backbone) backbone_->backward(dy);
}

}  // namespace chexnet
