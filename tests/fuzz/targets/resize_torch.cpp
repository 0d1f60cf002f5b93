// Our antialias against PyTorch's kernel for bytes, which torchvision calls,
// bit for bit. Linked with LibTorch.
#include <ATen/ATen.h>

#include "fuzz/resize_input.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  const ResizeInput in = resize_input(bytes, 400);
  const Region& r = in.region;
  const auto ours = resized(in.image, r, in.size, ResizeKind::kAntialias);
  at::Tensor source = at::empty({1, 1, r.height, r.width}, at::kByte);
  for (int y = 0; y < r.height; ++y)
    std::copy_n(in.image.row(r.y + y) + r.x, r.width,
                source.data_ptr<uint8_t>() + int64_t{y} * r.width);
  const at::Tensor theirs = at::_upsample_bilinear2d_aa(
      source, {in.size, in.size}, /*align_corners=*/false);
  require(std::equal(ours.begin(), ours.end(), theirs.data_ptr<uint8_t>()),
          "the pixels are PyTorch's");
}

const Registered kTarget{{"resize_torch", run, nullptr, resize_seeds}};

}  // namespace
}  // namespace chexnet::fuzz
