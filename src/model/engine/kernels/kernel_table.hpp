// Fills the table of kernels for the instruction set of the including file.
#pragma once

#include "conv3_kernel.hpp"
#include "packed_weights.hpp"
#include "pointwise_back.hpp"
#include "pointwise_kernel.hpp"
#include "sets.hpp"
#include "stem_kernel.hpp"
#include "winograd.hpp"

namespace chexnet {
namespace {

template <class W, class S>
void set_winograd(WinogradKernels<S>& to) {
  using G = WinogradWeights<S, W::kM>;
  to.side = W::kM;
  to.most_tiles = W::kTiles;
  to.pack = G::pack;
  to.input = W::input;
  to.multiply = W::multiply;
  to.output = W::output;
  if constexpr (W::kM == 4) {
    to.gradient = W::gradient;
    to.multiply_back = W::multiply_back;
    to.weight_gradient = W::weight_gradient;
    to.kernel_gradients = G::kernel_gradients;
  }
}

template <class S, bool Pair>
Kernels<S> make_kernels(const char* name) {
  using W = Weights<S, Pair>;
  using P = Pointwise<S, Pair>;
  using B = PointwiseBack<S, Pair>;
  using C = Conv3<S, Pair>;
  using F = Stem<S, Pair>;
  Kernels<S> k{};
  k.name = name;
  k.pair = Pair ? 2 : 1;
  k.fma_loop = fma_loop<Accumulator<S>, Pair>;
  k.pack = W::pack;
  k.add_parts = W::add_parts;
  k.kernel_gradients = W::kernel_gradients;
  k.normalize = P::normalize;
  k.copy = P::copy;
  k.normalize_pooled = P::normalize_pooled;
  k.gradient = B::gradient;
  k.gradient_row = B::gradient_row;
  k.multiply = P::multiply;
  k.multiply_back = B::multiply_back;
  k.multiply_back_pooled = B::multiply_back_pooled;
  k.weight_gradient = B::weight_gradient;
  k.conv3_band = C::band;
  k.conv3_band_back = C::band_back;
  k.conv3_weight_gradient = C::weight_gradient;
  set_winograd<Winograd<S, 2>>(k.winograd2);
  set_winograd<Winograd<S, 4>>(k.winograd4);
  set_winograd<Winograd<S, 4, kWideChunk>>(k.winograd4_wide);
  k.stem_row = F::conv_row;
  k.stem_pool_row = F::pool_row;
  k.stem_scatter_row = F::scatter_row;
  k.stem_sums_row = F::sums_row;
  k.stem_gradient_row = F::gradient_row;
  k.stem_weight_gradient_row = F::weight_gradient_row;
  k.residual = F::residual;
  k.residual_sums = F::residual_sums;
  k.mean = F::mean;
  k.mean_back = F::mean_back;
  return k;
}

[[maybe_unused]] KernelSet make_set(const char* name) {
  return {make_kernels<float, false>(name), make_kernels<Bf16, false>(name),
          make_kernels<double, false>(name)};
}

}  // namespace
}  // namespace chexnet
