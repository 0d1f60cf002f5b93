#include "chexnet/train/precision.hpp"

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

// Dense TFLOP/s of NVIDIA's data sheets (V100 2020, A100 2021, H100 2023) at
// the clock that each counts.
TEST_CASE("a GPU's peak is what its data sheet says") {
  const auto tera = [](int major, int minor, int count, double mhz,
                       Precision precision) {
    GpuInfo gpu;
    gpu.major = major;
    gpu.minor = minor;
    gpu.multiprocessors = count;
    gpu.clock_hz = 1e6 * mhz;
    return peak_flops(gpu, precision) / 1e12;
  };
  CHECK(tera(7, 0, 80, 1530, Precision::kFp16) == Approx(125).margin(1));
  CHECK(tera(7, 0, 80, 1530, Precision::kFp32) == Approx(15.7).margin(0.1));
  CHECK(tera(8, 0, 108, 1410, Precision::kBf16) == Approx(312).margin(1));
  CHECK(tera(8, 0, 108, 1410, Precision::kTf32) == Approx(156).margin(1));
  CHECK(tera(9, 0, 132, 1830, Precision::kBf16) == Approx(989).margin(1));
  CHECK(tera(9, 0, 132, 1980, Precision::kFp32) == Approx(67).margin(0.1));
  CHECK(tera(8, 9, 142, 2520, Precision::kBf16) == Approx(366).margin(5));
  CHECK(tera(3, 5, 15, 875, Precision::kFp32) == 0);     // not known
  CHECK(tera(13, 0, 100, 1000, Precision::kBf16) == 0);  // nor this
  CHECK(tera(8, 0, 108, 1410, Precision::kFp64) == 0);
}
