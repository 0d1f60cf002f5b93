#include "model/aten/normalization.hpp"

#include <ATen/ATen.h>

#include "chexnet/model/operator_audit.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("each gray value becomes (v / 255 - mean) / std of its channel") {
  const at::Tensor images = at::arange(256).to(at::kByte).view({2, 1, 8, 16});
  for (const auto precision : {Precision::kFp64, Precision::kFp32,
                               Precision::kBf16, Precision::kFp16}) {
    INFO(choice_name(precision));
    const NetworkOptions options = {.precision = precision};
    const at::Tensor x = PixelNormalization(options).apply(images);
    CHECK(x.is_contiguous(activation_format(precision)));
    const auto type = master_type(precision);
    const auto per_channel = [&](const std::vector<double>& values) {
      return at::tensor(values, at::kDouble).to(type).view({1, 3, 1, 1});
    };
    const at::Tensor wanted =
        ((images.to(type) / 255.0 - per_channel(options.mean)) /
         per_channel(options.std))
            .to(compute_type(precision));
    CHECK(x.scalar_type() == wanted.scalar_type());
    CHECK(at::equal(x, wanted));
  }
}

TEST_CASE("images become the network's input without wide copies between") {
  const PixelNormalization normalization({.precision = Precision::kBf16});
  const at::Tensor images = at::zeros({2, 1, 32, 32}, at::kByte);
  const OperatorAudit audit;
  normalization.apply(images);
  // The indices, 4 bytes a pixel, and the result, 6.
  CHECK(audit.counts().allocated_bytes == images.numel() * (4 + 6));
}
