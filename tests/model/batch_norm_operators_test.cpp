#include "model/aten/batch_norm_operators.hpp"

#include <ATen/ATen.h>

#include "model/aten/own_operators.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

constexpr auto kFormat = at::MemoryFormat::ChannelsLast;

// Halves, so that a window has equal ones, and a channel that ReLU cuts.
BatchNormInput made_input(int64_t height, int64_t width, at::ScalarType type) {
  const at::Tensor bias = at::randn({8});
  bias[3] = -20;
  BatchNormInput input{(at::randn({2, 8, height, width}) * 2).round() / 2,
                       at::randn({8}),
                       bias,
                       {at::randn({8}), at::rand({8}) + .5},
                       true};
  input.x = input.x.to(type).contiguous(kFormat);
  return input;
}

at::Tensor gradient_like(const at::Tensor& map) {
  return at::randn(map.sizes()).to(map.scalar_type()).contiguous(kFormat);
}

ReadersGradient new_sum() { return {{}, at::zeros({8}), at::zeros({8})}; }

}  // namespace

TEST_CASE("BatchNorm's operators pool as BatchNorm and a pool do in turn") {
  at::manual_seed(1);
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const auto& [height, width] :
         {std::pair(8, 8), {7, 10}, {9, 5}, {2, 2}, {3, 2}}) {
      INFO(type << ", " << height << " x " << width);
      const BatchNormInput input = made_input(height, width, type);
      const at::Tensor whole = batch_norm_apply(input, {}, {}, true);
      const auto sizes = input.x.sizes();

      const auto [y, argmax] = batch_norm_max_pool(input, {});
      const auto [max, indices] = max_pool(whole);
      CHECK(at::equal(y, max));
      CHECK(argmax.scalar_type() == at::kByte);
      CHECK(at::equal(argmax == kNoArgmax, y == 0));
      const at::Tensor dy = gradient_like(y), unpooled = max_pool_gradient(
                                                  dy, sizes, kFormat, indices);
      const ChannelSums sums = batch_norm_sums(dy, argmax, input, true),
                        wanted = batch_norm_sums(unpooled, {}, input, true);
      CHECK(at::equal(sums.dweight, wanted.dweight));
      CHECK(at::equal(sums.dbias, wanted.dbias));
      CHECK(at::equal(batch_norm_gradient(dy, argmax, input, sums, true),
                      batch_norm_gradient(unpooled, {}, input, sums, true)));

      const at::Tensor mean = batch_norm_average_pool(input, {});
      CHECK(at::equal(mean, average_pool(whole)));
      const at::Tensor d = gradient_like(mean);
      ReadersGradient found = new_sum(), two = new_sum();
      const ChannelSums own = batch_norm_add_up(d, input, found),
                        others = batch_norm_add_up(
                            average_pool_gradient(d, sizes, kFormat), input,
                            two);
      CHECK(at::equal(own.dweight, others.dweight));
      CHECK(at::equal(found.map, two.map));
      CHECK(at::equal(found.offset, two.offset));
      CHECK(at::equal(found.slope, two.slope));
    }
}
