// Fills the table of kernels for the instruction set of the including file.
#pragma once

#include "conv3.hpp"
#include "pointwise.hpp"
#include "pointwise_back.hpp"
#include "sets.hpp"
#include "stem.hpp"
#include "winograd.hpp"
#include "winograd4.hpp"

namespace chexnet {
namespace {

template <class S, bool Pair>
Kernels<S> make_kernels(const char* name) {
  using P = Pointwise<S, Pair>;
  using B = PointwiseBack<S, Pair>;
  using C = Conv3<S, Pair>;
  using W = Winograd<S>;
  using F = Stem<S, Pair>;
  Kernels<S> k{};  // what a set lacks stays null
  k.name = name;
  k.pair = Pair ? 2 : 1;
  k.fma_loop = fma_loop<Accumulator<S>, Pair>;
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
  if constexpr (!Pair) {
    k.winograd_input = W::input;
    k.winograd_gradient = W::gradient;
    k.winograd_multiply = W::multiply;
    k.winograd_output = W::output;
    k.winograd_output_back = W::output_back;
    k.winograd_weight_gradient = W::weight_gradient;
  }
  if constexpr (sizeof(S) != 2) {
    k.winograd4_input = Winograd4<S>::input;
    k.winograd4_multiply = Winograd4<S>::multiply;
    k.winograd4_output = Winograd4<S>::output;
  }
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
