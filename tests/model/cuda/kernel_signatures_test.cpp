// The list that kernels are launched by against their source.
#include "model/cuda/kernel_signatures.hpp"

#include <string>
#include <type_traits>
#include <utility>

#include "model/cuda/kernels_on_cpu.hpp"
#include "support/catch.hpp"

namespace chexnet {
namespace {

// A parameter of the source as the list has it: pointers to maps are void's.
template <class T>
struct Listed {
  using Pointed = std::remove_pointer_t<T>;
  static constexpr bool kOfMap =
      std::is_pointer_v<T> && std::is_class_v<std::remove_const_t<Pointed>>;
  using Map = std::conditional_t<std::is_const_v<Pointed>, const void*, void*>;
  using Type = std::conditional_t<kOfMap, Map, T>;
};

template <class... Parameters>
Kernel<void(typename Listed<Parameters>::Type...)> listed(
    void (*)(Parameters...));

template <class Function, class Listing>
bool same(Function*, const Listing& kernel, const std::string& name) {
  return std::is_same_v<decltype(listed(std::declval<Function*>())), Listing> &&
         kernel.name == name;
}

#define SAME(space, function, kernel) \
  same(&space::function, (kernel), #function)

#define CHECK_ALL(space)                                                       \
  CHECK(SAME(space, batch_norm_statistics, kBatchNormStatistics));             \
  CHECK(SAME(space, batch_norm_apply, kBatchNormApply));                       \
  CHECK(SAME(space, batch_norm_sums, kBatchNormSums));                         \
  CHECK(SAME(space, batch_norm_add_up, kBatchNormAddUp));                      \
  CHECK(SAME(space, batch_norm_corrected, kBatchNormCorrected));               \
  CHECK(SAME(space, batch_norm_gradient, kBatchNormGradient));                 \
  CHECK(SAME(space, batch_norm_max_pool, kBatchNormMaxPool));                  \
  CHECK(SAME(space, batch_norm_max_pool_sums, kBatchNormMaxPoolSums));         \
  CHECK(SAME(space, batch_norm_max_pool_gradient, kBatchNormMaxPoolGradient)); \
  CHECK(SAME(space, batch_norm_average_pool, kBatchNormAveragePool));          \
  CHECK(SAME(space, batch_norm_average_pool_add_up,                            \
             kBatchNormAveragePoolAddUp));                                     \
  CHECK(SAME(space, merge_moments, kMergeMoments));                            \
  CHECK(SAME(space, relu_backward, kReluBackward))

}  // namespace

TEST_CASE("kernels are launched by what their source takes") {
  CHECK_ALL(fp32);
  CHECK_ALL(fp16);
  CHECK_ALL(bf16);
}

}  // namespace chexnet
