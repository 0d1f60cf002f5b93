// A whole network: uint8 images in, logits out; gradients of the logits in, gradients of all
// parameters into the flat buffer. Built from a NetworkSpec; owns its Parameters. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/engine/engine.hpp"
#include "chexnet/engine/network_spec.hpp"
#include "chexnet/model/layers.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

at::ScalarType master_type(Precision precision);  // float, or double for kFp64
at::ScalarType compute_type(Precision precision);
Arithmetic arithmetic_of(Precision precision);  // the engine's; not kFp16

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
    bool own_engine = true;        // false: ATen operators also where the engine could
    bool winograd = true;
    std::vector<double> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
  };
  Network(const NetworkSpec& spec, std::int64_t findings, Options options);
  Network(const Network&) = delete;  // layers refer to their network
  Network& operator=(const Network&) = delete;

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const Options& options() const { return options_; }

  // images: uint8 [N,1,S,S], on any device. Returns logits [N,K] in the master type on the
  // network's device.
  at::Tensor forward(const at::Tensor& images, Mode mode);
  // dlogits as returned by the loss. Gradients land in parameters().
  void backward(const at::Tensor& dlogits);

  // What trains batches of this shape, for the settings table: the engine, or ATen and why.
  std::string description(std::int64_t batch, std::int64_t size);
  // Whether results depend on the number of threads.
  bool depends_on_threads(std::int64_t size) const { return !engine_refusal(size).empty(); }
  // Bytes in which a training step of this shape works beside parameters, by the engine's plan;
  // nothing where ATen computes.
  std::optional<std::size_t> planned_bytes(std::int64_t batch, std::int64_t size) const;
  // Called now and then by the thread that computes, in the engine's forward and backward.
  void set_tick(std::function<void()> tick);
  // Times by kind of layer are added to `layer_times`; null: none. Nothing where ATen computes.
  void set_layer_times(LayerTimes* layer_times);
  // Marks groups of layers for a timeline; null: none. Nothing where ATen computes.
  void set_profiler(Profiler* profiler);

 private:
  std::string engine_refusal(std::int64_t size) const;  // empty: the engine computes
  Engine::Options engine_options(std::int64_t batch, std::int64_t size, bool training) const;
  Engine& engine_for(std::int64_t batch, std::int64_t size, bool training);
  at::Tensor on_device(const at::Tensor& images) const;
  at::Tensor normalize(const at::Tensor& images) const;
  Options options_;
  Parameters parameters_;
  LayerContext context_;
  std::unique_ptr<Backbone> backbone_;
  std::unique_ptr<Classifier> classifier_;
  at::Tensor mean_, std_;

  // The CPU engine: one for training and one for inference, in the same memory, made at first use
  // and remade when the batch, the size or the number of threads changes.
  struct Built {
    std::int64_t batch = 0, size = 0;
    std::unique_ptr<Engine> engine;
  };
  NetworkSpec spec_;
  std::int64_t findings_;
  std::unique_ptr<ThreadPool> thread_pool_;
  Arena arena_;
  Built training_, inference_;
  Engine* active_ = nullptr;  // of the last forward
  at::Tensor images_;         // of the last forward, for backward
  LayerTimes* layer_times_ = nullptr;
  Profiler* profiler_ = nullptr;
  std::function<void()> tick_;
};

}  // namespace chexnet
