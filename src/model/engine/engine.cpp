#include "chexnet/model/engine/engine.hpp"

#include <cassert>

#include "chexnet/core/error.hpp"
#include "densenet.hpp"
#include "resnet.hpp"

// Memory is one mapping: kept for the network's life, workspace of one pass,
// maps by the plan. Its size is known from the description alone, before there
// is memory: engine_bytes builds a network on no parameters and no pool and
// asks it.
namespace chexnet {
namespace {

template <class S>
const char* storage_name() {
  if (sizeof(S) == 2) return "bf16";
  return sizeof(S) == 4 ? "fp32" : "fp64";
}

template <class S, class Net, class Spec>
class NetworkEngine final : public Engine {
 public:
  using A = Accumulator<S>;
  NetworkEngine(const Spec& spec, const std::string& head,
                const Options& options, const FlatParameters& parameters,
                int threads, ThreadPool* thread_pool, Arena* arena)
      : options_(options),
        build_{kernels<S>(options.instruction_set), parameters, threads,
               options.trains(kStemPart), options.winograd},
        thread_pool_(thread_pool),
        arena_(arena) {
    build_.moment = 1;
    network_ = std::make_unique<Net>(build_, spec, head, options);
    build_.plan.assign_offsets();
  }

  size_t bytes() const override {
    LinearAllocator allocator;
    allocator.take<std::byte>(static_cast<int64_t>(build_.kept));
    allocator.take<std::byte>(static_cast<int64_t>(build_.workspace));
    allocator.take<std::byte>(static_cast<int64_t>(build_.plan.bytes()));
    return allocator.used();
  }
  void forward(const uint8_t* images, const MicroBatch& micro_batch,
               void* logits) override {
    images_ = images;
    Pass<S> run = this->run(micro_batch);
    run.pack = options_.training || !packed_;
    packed_ = false;  // where this forward throws
    network_->forward(run, images, static_cast<A*>(logits));
    packed_ = fixed_weights_;
  }
  void set_fixed_weights(bool fixed) override {
    packed_ = packed_ && fixed;
    fixed_weights_ = fixed;
  }
  void backward(const void* dlogits, const MicroBatch& micro_batch) override {
    assert(images_ != nullptr);  // a forward came before
    network_->backward(run(micro_batch), images_,
                       static_cast<const A*>(dlogits));
  }
  FeatureShape feature_shape() const override {
    const ClassifierHead<S>& head = network_->head();
    return {head.shape().height, head.shape().width, head.channels()};
  }
  void features(void* into) override {
    assert(images_ != nullptr);  // a forward came before
    const Pass<S> run = this->run({});
    network_->head().features(run, network_->features(run),
                              static_cast<A*>(into));
  }
  void feature_gradient(const void* dlogits, void* into) override {
    network_->head().feature_gradient(run({}), static_cast<const A*>(dlogits),
                                      static_cast<A*>(into));
  }
  void set_layer_times(LayerTimes* layer_times) override {
    layer_times_ = layer_times;
  }
  void set_profiler(Profiler* profiler) override { profiler_ = profiler; }
  std::string description() const override {
    return std::string("own engine, ") + storage_name<S>() + " by " +
           build_.kernels.name +
           (build_.winograd ? ", 3x3 by Winograd" : ", 3x3 direct");
  }

 private:
  Pass<S> run(const MicroBatch& micro_batch) {
    // Made to compute, not to be measured.
    assert(arena_ != nullptr && thread_pool_ != nullptr);
    assert(micro_batch.index >= 0 && micro_batch.index < micro_batch.count);
    LinearAllocator allocator(arena_->reserve(bytes()));
    Pass<S> run{build_.kernels, *thread_pool_, options_.sync_batchnorm};
    run.training = options_.training;
    run.micro_batch = micro_batch;
    run.kept = allocator.take<std::byte>(static_cast<int64_t>(build_.kept));
    run.workspace =
        allocator.take<std::byte>(static_cast<int64_t>(build_.workspace));
    run.workspace_of_thread = build_.workspace_of_thread;
    run.arena =
        allocator.take<std::byte>(static_cast<int64_t>(build_.plan.bytes()));
    run.plan = &build_.plan;
    run.layer_times = layer_times_;
    run.profiler = profiler_;
    return run;
  }

  Options options_;
  Build<S> build_;
  ThreadPool* thread_pool_;
  Arena* arena_;
  std::unique_ptr<Net> network_;
  const uint8_t* images_ = nullptr;
  bool fixed_weights_ = false, packed_ = false;
  LayerTimes* layer_times_ = nullptr;
  Profiler* profiler_ = nullptr;
};

template <class S>
std::unique_ptr<Engine> of_storage(const NetworkSpec& spec,
                                   const Engine::Options& options,
                                   const FlatParameters& parameters,
                                   int threads, ThreadPool* thread_pool,
                                   Arena* arena) {
  if (const auto* dense = std::get_if<DenseNetSpec>(&spec.family))
    return std::make_unique<NetworkEngine<S, DenseNet<S>, DenseNetSpec>>(
        *dense, spec.head.name, options, parameters, threads, thread_pool,
        arena);
  return std::make_unique<NetworkEngine<S, ResNet<S>, ResNetSpec>>(
      std::get<ResNetSpec>(spec.family), spec.head.name, options, parameters,
      threads, thread_pool, arena);
}

std::unique_ptr<Engine> build(const NetworkSpec& spec,
                              const Engine::Options& options,
                              const FlatParameters& parameters, int threads,
                              ThreadPool* thread_pool, Arena* arena) {
  assert(options.batch > 0 && options.findings > 0 && threads > 0);
  assert(options.frozen_parts < kHeadPart);
  const std::string refusal = engine_refuses(spec, options.size);
  if (!refusal.empty()) throw ConfigError("[engine] {}", refusal);
  switch (options.arithmetic) {
    case Arithmetic::kFp64:
      return of_storage<double>(spec, options, parameters, threads, thread_pool,
                                arena);
    case Arithmetic::kBf16:
      return of_storage<Bf16>(spec, options, parameters, threads, thread_pool,
                              arena);
    case Arithmetic::kFp32:
      break;
  }
  return of_storage<float>(spec, options, parameters, threads, thread_pool,
                           arena);
}

// Whether every map has channels in multiples of 32: the kernels know no rest.
// Each block adds layers * growth channels, and each transition halves what is
// there by then, so 64 + 5 * 32 = 224 becomes 112, which is none.
bool whole_blocks(const DenseNetSpec& spec) {
  if (spec.stem != 64 || spec.growth % kOutputs != 0) return false;
  int channels = spec.stem;
  for (size_t b = 0; b < spec.blocks.size(); ++b) {
    channels += spec.blocks[b] * spec.growth;
    if (b + 1 == spec.blocks.size()) break;
    channels /= 2;
    if (channels % kOutputs != 0) return false;
  }
  return true;
}

}  // namespace

std::string engine_refuses(const NetworkSpec& spec, int size) {
  const auto* dense = std::get_if<DenseNetSpec>(&spec.family);
  if (dense != nullptr && !whole_blocks(*dense))
    return "channels in multiples of " + std::to_string(kOutputs);
  if (size < 32)
    return "images of at least 32 pixels, not " + std::to_string(size);
  return "";
}

std::unique_ptr<Engine> make_engine(const NetworkSpec& spec,
                                    const Engine::Options& options,
                                    const FlatParameters& parameters,
                                    ThreadPool& thread_pool, Arena& arena) {
  return build(spec, options, parameters, thread_pool.size(), &thread_pool,
               &arena);
}

size_t engine_bytes(const NetworkSpec& spec, const Engine::Options& options,
                    int threads) {
  FlatParameters nothing;
  nothing.parameter =
      nothing.statistics = [](const std::string&) { return int64_t{0}; };
  return build(spec, options, nothing, threads, nullptr, nullptr)->bytes();
}

}  // namespace chexnet
