// A network on the CPU, forward and backward, without a tape and without
// allocation in a step: each layer's passes work on memory that is planned
// once. docs/engine.md shows how.
//
// Results do not depend on the number of threads, to the last bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/core/thread_pool.hpp"
#include "chexnet/model/engine/flat_parameters.hpp"
#include "chexnet/model/engine/layer_times.hpp"
#include "chexnet/model/engine/memory_plan.hpp"
#include "chexnet/model/engine/micro_batch.hpp"
#include "chexnet/model/engine/network_spec.hpp"

namespace chexnet {

class Engine {
 public:
  struct Options {
    int batch = 1, size = 224, findings = 14;  // images, pixels, outputs
    Arithmetic arithmetic = Arithmetic::kFp32;
    bool training = true;  // batch statistics, and memory for backward
    // In training: so many parts, from the stem on, compute as in inference and
    // have no backward. The blocks' last at least is trained.
    int frozen_parts = 0;
    bool trains(int part) const { return training && part >= frozen_parts; }
    bool winograd = true;  // 3x3 convolutions by Winograd where it is faster
    // Ranks that share batch statistics.
    Communicator* sync_batchnorm = nullptr;
    std::vector<double> mean = {0.485, 0.456, 0.406},
                        std = {0.229, 0.224, 0.225};
    std::string instruction_set;  // as kernels() takes it
  };

  virtual ~Engine() = default;

  // Bytes it works in, beside the parameters. Known before anything is
  // computed.
  virtual size_t bytes() const = 0;
  // images: uint8 [batch][size][size]; in training they are read again by
  // backward. logits [batch][findings] in the accumulator's type. In training
  // the batch statistics go into the memory after the gradients.
  virtual void forward(const uint8_t* images, const MicroBatch& micro_batch,
                       void* logits) = 0;
  // Promises that weights stay as they are until set otherwise: an engine for
  // inference then brings them into its form once, and not in each forward.
  // Nothing else may use the arena meanwhile. No effect in training.
  virtual void set_fixed_weights(bool fixed) = 0;
  // dlogits as logits. Gradients go to the flat buffer, in its order, and
  // micro_batch.written tells how far it is complete. An engine that is not for
  // training computes the classifier's gradients only.
  virtual void backward(const void* dlogits, const MicroBatch& micro_batch) = 0;
  // The map that the classifier head averages, after its norm and ReLU:
  // [batch][height][width][channels] in the accumulator's type.
  struct FeatureShape {
    int height = 0, width = 0, channels = 0;
  };
  virtual FeatureShape feature_shape() const = 0;
  // Of the last forward, as long as nothing else used the arena.
  virtual void features(void* into) = 0;
  // The gradient of sum(dlogits * logits) by that map, by the head's backward;
  // parameters' gradients stay as they are.
  virtual void feature_gradient(const void* dlogits, void* into) = 0;
  // Adds times to `layer_times` until set otherwise; null: none.
  virtual void set_layer_times(LayerTimes* layer_times) = 0;
  // Marks each group of layers (stem, blocks, head) for a timeline; null: none.
  virtual void set_profiler(Profiler* profiler) = 0;
  // "fp32 by avx512, 3x3 by Winograd"
  virtual std::string description() const = 0;
};

// Whether the engine knows this network at this size; "" or the reason why not.
std::string engine_refuses(const NetworkSpec& spec, int size);
// `arena` may serve several engines of which one works at a time, from forward
// to the end of backward. ThreadPool and arena must outlive the engine.
std::unique_ptr<Engine> make_engine(const NetworkSpec& spec,
                                    const Engine::Options& options,
                                    const FlatParameters& parameters,
                                    ThreadPool& thread_pool, Arena& arena);
// Bytes of such an engine, without taking memory; `threads` compute.
size_t engine_bytes(const NetworkSpec& spec, const Engine::Options& options,
                    int threads);

}  // namespace chexnet
