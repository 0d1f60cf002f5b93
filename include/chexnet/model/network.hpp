// A whole network: uint8 images in, logits out; gradients of the logits in,
// gradients of all parameters into the flat buffer. Its parameters, and for
// each shape of images one back end that computes (backend.hpp). Built from a
// NetworkSpec; owns its Parameters. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/model/backend.hpp"
#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/model/network_options.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

// Only this decides which back end computes: the first of `entries` that does
// not refuse the shape. Each back end is made when it is first chosen, and
// stays.
class BackendChoice {
 public:
  struct Chosen {
    Backend* backend = nullptr;
    // Why those before it do not compute; "" when it is the first.
    std::string refused;
  };
  BackendChoice(BackendContext context, std::vector<BackendEntry> entries);
  const Chosen& of(int64_t height, int64_t width);
  // To all back ends there are and will be.
  void attach(Attachments attachments);
  // All back ends are made anew when they are next chosen.
  void forget();
  const Attachments& attachments() const { return attachments_; }

 private:
  BackendContext context_;
  std::vector<BackendEntry> entries_;
  // [entry], null until it is chosen
  std::vector<std::unique_ptr<Backend>> made_;
  Attachments attachments_;
  Chosen chosen_;  // of the last shape
  int64_t height_ = -1, width_ = -1;
};

class Network {
 public:
  Network(const NetworkSpec& spec, int64_t findings, NetworkOptions options,
          std::vector<BackendEntry> backends = default_backends());
  Network(const Network&) = delete;  // back ends refer to their network's parts
  Network& operator=(const Network&) = delete;

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const NetworkSpec& spec() const { return spec_; }
  const NetworkOptions& options() const { return options_; }

  // images: uint8 [N,1,H,W], on any device. Returns logits [N,K] in the master
  // type on the network's device.
  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch = {});
  // dlogits as returned by the loss, of the last forward, with the same
  // micro-batch. Gradients land in parameters().
  void backward(const at::Tensor& dlogits, const MicroBatch& micro_batch = {});

  // As the back end's (backend.hpp); images as of forward.
  FeatureForward forward_features(const at::Tensor& images);
  at::Tensor feature_gradient(const at::Tensor& dlogits);
  MapGrid last_map_grid() const { return chexnet::last_map_grid(spec_); }
  // Of the linear layer after the map's mean, [K,C].
  const at::Tensor& classifier_weight() const;

  // Replaces options().frozen, from the next forward on.
  void freeze(FrozenPart until);
  // The back end that trains square images of this size, for the settings
  // table: the engine, or ATen and why.
  std::string description(int64_t batch, int64_t size);
  // Whether results depend on the number of threads.
  bool depends_on_threads(int64_t size) const;
  // Bytes in which a training step of this shape works beside parameters, by
  // the back end's plan; nothing where it has none (ATen).
  std::optional<size_t> planned_bytes(int64_t batch, int64_t size) const;

  // Calls `tick` now and then from the thread that computes, in forward and
  // backward, as long as it lives; one at a time. ATen computes without.
  class TickGuard {
   public:
    TickGuard(Network& network, std::function<void()> tick);
    ~TickGuard();
    TickGuard(const TickGuard&) = delete;
    TickGuard& operator=(const TickGuard&) = delete;

   private:
    Network& network_;
  };
  // As long as one lives, weights do not change and nothing is trained, so that
  // a back end prepares them once for many forwards. One at a time.
  class FixedWeights {
   public:
    explicit FixedWeights(Network& network);
    ~FixedWeights();
    FixedWeights(const FixedWeights&) = delete;
    FixedWeights& operator=(const FixedWeights&) = delete;

   private:
    Network& network_;
  };
  bool ticks() const { return static_cast<bool>(choice_->attachments().tick); }
  // Times by kind of layer are added to `layer_times`; null: none. Nothing
  // where ATen computes.
  void set_layer_times(LayerTimes* layer_times);
  // Marks groups of layers for a timeline; null: none. Nothing where ATen
  // computes.
  void set_profiler(Profiler* profiler);

 private:
  void set_tick(std::function<void()> tick);
  void set_fixed_weights(bool fixed);
  NetworkSpec spec_;
  NetworkOptions options_;
  Parameters parameters_;
  std::unique_ptr<BackendChoice> choice_;
  Backend* active_ = nullptr;  // of the last forward
};

}  // namespace chexnet
