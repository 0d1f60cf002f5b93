// Computes a network: the interface between parameters and the code that
// multiplies. Each back end is one folder of src/model and one line in
// default_backends (src/model/backends.cpp).
//
// A back end reads parameters and running statistics from the flat buffers of
// Parameters, and writes gradients and this step's batch statistics there (see
// parameters.hpp for layout and order). It finds them by torchvision's names.
// Between forward and backward it keeps what it needs; a forward without a
// backward leaves nothing behind, nor does one that throws: the next forward
// starts afresh. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/profiler.hpp"
#include "chexnet/model/engine/layer_times.hpp"
#include "chexnet/model/engine/micro_batch.hpp"
#include "chexnet/model/engine/network_spec.hpp"
#include "chexnet/model/network_options.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

enum class Mode {
  kInference,  // running statistics, nothing kept
  kTraining,   // batch statistics, inputs kept for backward
};

// Optional helpers of a caller. A back end may ignore all of them.
struct Attachments {
  // Called now and then by the thread that computes; may throw.
  std::function<void()> tick;
  // Times by kind of layer are added; null: none.
  LayerTimes* layer_times = nullptr;
  Profiler* profiler = nullptr;  // groups of layers are marked; null: none
  // A promise: parameters and running statistics stay as they are, and nothing
  // is trained, so they may be kept in another form from forward to forward.
  bool fixed_weights = false;
};

// A forward in inference that keeps what the classifier head averages, for heat
// maps: map [N,C,h,w], after the last norm and ReLU. Both in the master type,
// on the network's device.
struct FeatureForward {
  at::Tensor logits, map;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // images: uint8 [N,1,H,W], on any device, for whose shape this back end was
  // chosen. Returns logits [N,K] in the master type on the network's device. In
  // training, it also fills part micro_batch.index of the batch statistics.
  virtual at::Tensor forward(const at::Tensor& images, Mode mode,
                             const MicroBatch& micro_batch) = 0;
  // dlogits [N,K] of the last forward, which was for training. Fills the
  // gradients in the order of the flat buffer, and calls micro_batch.written
  // after each parameter. Of a frozen backbone the classifier head's only.
  virtual void backward(const at::Tensor& dlogits,
                        const MicroBatch& micro_batch) = 0;

  // As forward in inference.
  virtual FeatureForward forward_features(const at::Tensor& images) = 0;
  // The gradient of sum(dlogits * logits) by the map of the last
  // forward_features, as its shape, by the head's backward. Parameters'
  // gradients stay as they are.
  virtual at::Tensor feature_gradient(const at::Tensor& dlogits) = 0;

  // Bytes in which a training step of square images works, beside parameters;
  // nothing where it has no plan.
  virtual std::optional<size_t> planned_bytes(int64_t batch, int64_t size) = 0;
  // The code that trains such batches, for the settings table.
  virtual std::string description(int64_t batch, int64_t size) = 0;
  // Whether the last bits of results depend on the number of threads.
  virtual bool depends_on_threads() const = 0;
  // Replaces what was attached before.
  virtual void attach(const Attachments& attachments) = 0;
};

// The network for a back end. All of it outlives the back end; parameters are
// allocated.
struct BackendContext {
  const NetworkSpec& spec;
  int64_t findings;
  const NetworkOptions& options;
  Parameters& parameters;
};

struct BackendEntry {
  // "" where it computes images of `height` x `width` pixels, or why not.
  std::function<std::string(const BackendContext&, int64_t height,
                            int64_t width)>
      refusal;
  std::function<std::unique_ptr<Backend>(const BackendContext&)> make;
};

// All there are, in order of preference. The last one refuses nothing.
std::vector<BackendEntry> default_backends();

}  // namespace chexnet
