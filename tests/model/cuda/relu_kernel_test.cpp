#include <random>

#include "model/cuda/kernels_on_cpu.hpp"
#include "support/catch.hpp"

namespace chexnet {
namespace {

// Small whole numbers, so that sums are exact.
Values filled(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Values values(count);
  for (float& value : values) value = static_cast<float>(random() % 9) - 4;
  return values;
}

#define MASKED_BY(space)                                                    \
  [](const Values& dy, const Values& residual, const Values& y) {           \
    using E = ELEMENTS(space);                                              \
    const auto d = E::encoded(dy), m = E::encoded(residual),                \
               v = E::encoded(y);                                           \
    auto dx = d;                                                            \
    cuda_words::run_kernel({2, 1}, {8, 1}, {0}, [&] {                       \
      space::relu_backward(d.data(), residual.empty() ? nullptr : m.data(), \
                           v.data(), static_cast<unsigned>(d.size()),       \
                           dx.data());                                      \
    });                                                                     \
    return E::decoded(dx);                                                  \
  }

}  // namespace

TEST_CASE("the kernel of ReLU's gradient adds and cuts") {
  const Values dy = filled(560, 1), residual = filled(560, 2),
               y = filled(560, 3);
  for (const auto mask :
       {+MASKED_BY(fp32), +MASKED_BY(fp16), +MASKED_BY(bf16)}) {
    const Values both = mask(dy, residual, y), one = mask(dy, {}, y);
    for (size_t i = 0; i < y.size(); ++i) {
      REQUIRE(both[i] == (y[i] > 0 ? dy[i] + residual[i] : 0));
      REQUIRE(one[i] == (y[i] > 0 ? dy[i] : 0));
    }
  }
}

}  // namespace chexnet
