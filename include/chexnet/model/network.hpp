// A whole network: uint8 images in, logits out; gradients of the logits in, gradients of all
// parameters into the flat buffer. Built from a NetworkSpec; owns its Parameters. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/model/layers.hpp"
#include "chexnet/model/network_spec.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

enum class Precision { kFp64, kFp32, kBf16, kFp16 };
Precision precision_of(const std::string& name);  // not "auto"
std::string precision_name(Precision precision);
at::ScalarType master_type(Precision precision);  // float, or double for kFp64
at::ScalarType compute_type(Precision precision);

// The convolutional part: images [N,3,H,W] -> features [N,C,h,w], ready for the classifier.
class Backbone {
 public:
  virtual ~Backbone() = default;
  virtual at::Tensor forward(const at::Tensor& x, Mode mode) = 0;
  virtual void backward(const at::Tensor& dy) = 0;
  virtual std::int64_t channels() const = 0;
};
std::unique_ptr<Backbone> make_densenet(LayerContext& context, const DenseNetSpec& spec);
std::unique_ptr<Backbone> make_resnet(LayerContext& context, const ResNetSpec& spec);

class Network {
 public:
  struct Options {
    at::Device device = at::kCPU;
    Precision precision = Precision::kFp32;
    Communicator* sync_batchnorm = nullptr;
    bool freeze_backbone = false;  // backbone in inference mode, only the classifier gets gradients
    std::vector<double> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
  };
  Network(const NetworkSpec& spec, std::int64_t findings, Options options);
  Network(const Network&) = delete;  // layers refer to their network
  Network& operator=(const Network&) = delete;

  Parameters& parameters() { return parameters_; }
  const Options& options() const { return options_; }

  // images: uint8 [N,1,S,S], on any device. Returns logits [N,K] in the master type on the
  // network's device.
  at::Tensor forward(const at::Tensor& images, Mode mode);
  // dlogits as returned by the loss. Gradients land in parameters().
  void backward(const at::Tensor& dlogits);

 private:
  at::Tensor normalise(const at::Tensor& images) const;
  Options options_;
  Parameters parameters_;
  LayerContext context_;
  std::unique_ptr<Backbone> backbone_;
  std::unique_ptr<Classifier> classifier_;
  at::Tensor mean_, std_;
};

}  // namespace chexnet
