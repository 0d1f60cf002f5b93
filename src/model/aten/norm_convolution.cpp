#include "norm_convolution.hpp"

namespace chexnet {

NormConvolution::NormConvolution(const LayerContext& context,
                                 const std::string& norm,
                                 const std::string& convolution,
                                 ConvolutionWindow window)
    : recompute_(context.recompute),
      norm_(context, norm),
      convolution_(context, convolution, window) {}

at::Tensor NormConvolution::forward(const at::Tensor& x,
                                    const ForwardPass& pass,
                                    const MapStatistics& known) {
  at::Tensor y = convolution_.forward(norm_.forward(x, pass, known), pass);
  if (recompute_ && norm_.can_repeat()) convolution_.drop_input();
  return y;
}

at::Tensor NormConvolution::backward(const at::Tensor& dy,
                                     const MicroBatch& micro_batch) {
  return norm_.backward(through_convolution(dy, micro_batch), micro_batch);
}

void NormConvolution::backward_onto(ReadersGradient& sum, const at::Tensor& dy,
                                    const MicroBatch& micro_batch) {
  norm_.backward_onto(sum, through_convolution(dy, micro_batch), micro_batch);
}

at::Tensor NormConvolution::through_convolution(const at::Tensor& dy,
                                                const MicroBatch& micro_batch) {
  if (recompute_ && norm_.can_repeat())
    convolution_.restore_input(norm_.repeated());
  return convolution_.backward(dy, micro_batch);
}

}  // namespace chexnet
