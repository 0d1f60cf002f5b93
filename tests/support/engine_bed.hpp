// Parameters, memory and a thread_pool for single layers of the engine, without
// LibTorch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "model/engine/build.hpp"
#include "model/engine/pass.hpp"

namespace chexnet {

template <class S>
class TestBed {
 public:
  using A = Accumulator<S>;
  // `sizes`: elements of each parameter, and of each BatchNorm's mean, by name.
  // Values are drawn.
  TestBed(const std::map<std::string, int>& sizes,
          const std::map<std::string, int>& norms, int threads, bool winograd,
          const std::string& instruction_set)
      : thread_pool_(threads),
        winograd_(winograd),
        instruction_set_(instruction_set) {
    int64_t at = 0, statistic = 0;
    for (const auto& [name, size] : sizes) {
      locations_[name] = at;
      at += size;
    }
    for (const auto& [name, channels] : norms) {
      statistics_[name] = statistic;
      statistic += int64_t{2} * channels;
    }
    Random random(5, Purpose::kTest, 0);
    values.resize(static_cast<size_t>(at));
    for (A& v : values) v = static_cast<A>(0.3 * random.normal());
    gradients.resize(static_cast<size_t>(at + statistic));
    running_.resize(static_cast<size_t>(statistic), A(1));
    parameters_.values = values.data();
    parameters_.gradients = gradients.data();
    parameters_.running = running_.data();
    parameters_.batch_statistics = at;
    parameters_.parameter = [this](const std::string& name) {
      return locations_.at(name);
    };
    parameters_.statistics = [this](const std::string& name) {
      return statistics_.at(name);
    };
    build.emplace(Build<S>{kernels<S>(instruction_set_), parameters_,
                           thread_pool_.size(), true, winograd_});
    build->moment = 1;
  }

  // Once all layers are described.
  Pass<S> run() {
    build->plan.assign_offsets();
    LinearAllocator counter;
    const auto lay_out = [&](LinearAllocator& allocator) {
      Pass<S> run{kernels<S>(instruction_set_), thread_pool_};
      run.training = build->training;
      run.kept = allocator.take<std::byte>(static_cast<int64_t>(build->kept));
      run.workspace =
          allocator.take<std::byte>(static_cast<int64_t>(build->workspace));
      run.arena =
          allocator.take<std::byte>(static_cast<int64_t>(build->plan.bytes()));
      run.plan = &build->plan;
      return run;
    };
    lay_out(counter);
    LinearAllocator allocator(arena_.reserve(counter.used()));
    return lay_out(allocator);
  }

  std::vector<A> values, gradients;
  std::optional<Build<S>> build;

 private:
  ThreadPool thread_pool_;
  bool winograd_;
  std::string instruction_set_;
  std::map<std::string, int64_t> locations_, statistics_;
  std::vector<A> running_;
  FlatParameters parameters_;
  Arena arena_;
};

}  // namespace chexnet
