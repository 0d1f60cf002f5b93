#include <ATen/Context.h>

#include "chexnet/model/network.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

// Makes ATen's back end, which sets the mode of the process.
void take(const NetworkOptions& options) {
  Network(network_spec("densenet121"), 14, options).description(1, 64);
}

}  // namespace

TEST_CASE("factors are rounded to TF32 only where the precision says so") {
  at::Context& library = at::globalContext();
  take({.precision = Precision::kTf32, .own_engine = false});
  CHECK(library.allowTF32CuDNN(at::Float32Op::CONV));
  CHECK(library.allowTF32CuBLAS());
  take({.precision = Precision::kFp32, .own_engine = false});
  CHECK_FALSE(library.allowTF32CuDNN(at::Float32Op::CONV));
  CHECK_FALSE(library.allowTF32CuBLAS());
}

TEST_CASE("deterministic kernels are asked for, or the fastest are measured") {
  at::Context& library = at::globalContext();
  take({.own_engine = false, .deterministic = true});
  CHECK(library.deterministicCuDNN());
  CHECK_FALSE(library.benchmarkCuDNN());
  take({.own_engine = false});
  CHECK_FALSE(library.deterministicCuDNN());
  CHECK(library.benchmarkCuDNN());
}
