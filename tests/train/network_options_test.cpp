#include "chexnet/train/network_options.hpp"

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

Device gpu(int major) {
  Device device;
  device.where = at::Device(at::kCUDA, 0);
  device.gpu = {.name = "Tesla", .uuid = "GPU-1", .major = major};
  return device;
}

}  // namespace

TEST_CASE("precision follows the GPU where none is asked for") {
  CHECK(resolve_precision({}, Device()) == Precision::kFp32);
  CHECK(resolve_precision({}, gpu(7)) == Precision::kFp16);
  CHECK(resolve_precision({}, gpu(8)) == Precision::kBf16);
  CHECK(resolve_precision(Precision::kTf32, gpu(8)) == Precision::kTf32);
}

TEST_CASE("bf16 on a GPU that has none is refused by every rank, with advice") {
  const auto texts = rank_results(2, [](Communicator& comm) {
    const Device device = gpu(comm.rank() == 0 ? 7 : 9);
    return error_of<DeviceError>(
        [&] { check_precision(Precision::kBf16, device, comm); });
  });
  CHECK(texts[0].find("has a Tesla (sm_70)") != std::string::npos);
  for (const auto& text : texts)
    CHECK(text.find("Hint: train.precision=fp16") != std::string::npos);

  const auto solo = solo_communicator();
  check_precision(Precision::kFp16, gpu(7), *solo);
  check_precision(Precision::kBf16, gpu(8), *solo);
  check_precision(Precision::kBf16, Device(), *solo);
}
