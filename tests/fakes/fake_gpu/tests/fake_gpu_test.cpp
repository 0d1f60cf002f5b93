// The fake GPU itself: it computes what the CPU computes, and finds what a GPU
// would make of a wrong program. Calls that end a process are made in a new
// one.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fakes/fake_gpu/allocator.hpp"
#include "fakes/fake_gpu/device.hpp"
#include "fakes/fake_gpu/memory.hpp"
#include "support/catch.hpp"

namespace fake_gpu {
namespace {

const at::Device& gpu() {
  static const at::Device device = [] {
    register_device();
    return at::Device(at::kPrivateUse1, 0);
  }();
  return device;
}

// Runs a hidden test of this program; its exit code.
int run_apart(const std::string& name) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const int status =
      std::system((program + " '" + name + "' >/dev/null 2>&1").c_str());
  return WEXITSTATUS(status);
}

c10::Stream another_stream() {
  return c10::impl::getDeviceGuardImpl(gpu().type())
      ->getStreamFromGlobalPool(gpu(), false);
}

// The operators that a network's layers need, in one small net.
struct Inputs {
  at::ScalarType type;
  at::MemoryFormat format;
};
std::vector<at::Tensor> small_net(const Inputs& inputs, at::Device device) {
  at::manual_seed(1);
  const auto draw = [&](at::IntArrayRef shape) {
    at::Tensor values = at::randn(shape, inputs.type);
    if (shape.size() == 4) values = values.contiguous(inputs.format);
    return values.to(device);
  };
  const at::Tensor x = draw({4, 16, 12, 12}), w = draw({32, 16, 3, 3});
  const at::Tensor gain = draw({32}), shift = draw({32});
  const at::Tensor y =
      at::convolution(x, w, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1);
  const at::Tensor mean = at::zeros({32}, gain.options());
  const at::Tensor var = at::zeros_like(mean);
  const auto [z, batch_mean, deviation] =
      at::native_batch_norm(y, gain, shift, mean, var, true, 1.0, 1e-5);
  const auto [pooled, places] =
      at::max_pool2d_with_indices(z.relu(), {3, 3}, {2, 2}, {1, 1});
  const at::Tensor joined = at::cat({z.narrow(1, 0, 4), z.narrow(1, 8, 8)}, 1);
  const at::Tensor dz = at::threshold_backward(at::ones_like(z), z, 0);
  const auto [dy, dgain, dshift] =
      at::native_batch_norm_backward(dz, y, gain, mean, var, batch_mean,
                                     deviation, true, 1e-5, {true, true, true});
  const auto [dx, dw, none] =
      at::convolution_backward(dy, x, w, c10::nullopt, {1, 1}, {1, 1}, {1, 1},
                               false, {0, 0}, 1, {true, true, false});
  at::Tensor value = w.clone();
  at::Tensor first = at::zeros_like(w), second = at::zeros_like(w);
  const at::Tensor steps = at::full({}, 1.0, w.options().dtype(at::kFloat));
  at::_fused_adam_({value}, {dw}, {first}, {second}, {}, {steps}, 1e-3, 0.9,
                   0.999, 0.01, 1e-8, false, false);
  std::vector<at::Tensor> copies = {at::empty_like(dw)};
  at::_foreach_copy_(copies, {dw});
  return {y,
          mean,
          var,
          pooled,
          places,
          joined,
          dgain,
          dshift,
          dx,
          dw,
          z,
          value,
          first,
          second,
          copies[0],
          at::linalg_vector_norm(dw),
          (z.sum() * 2).unsqueeze(0),
          joined.narrow(1, 1, 5).contiguous(inputs.format),
          at::isnan(dgain).logical_not(),
          gain.to(at::kDouble)};
}

TEST_CASE("the fake GPU computes what the CPU computes, to the last bit") {
  at::set_num_threads(1);
  for (const auto type : {at::kFloat, at::kDouble})
    for (const auto format :
         {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const auto expected = small_net({type, format}, at::kCPU);
      const auto found = small_net({type, format}, gpu());
      for (size_t i = 0; i < expected.size(); ++i) {
        INFO("result " << i);
        CHECK(found[i].device() == gpu());
        CHECK(found[i].strides() == expected[i].strides());
        CHECK(at::equal(found[i].cpu(), expected[i]));
      }
    }
}

TEST_CASE("tensors change shape, memory and type") {
  at::Tensor grown = at::arange(6, at::TensorOptions().device(gpu()));
  grown.resize_({9});
  CHECK(at::equal(grown.narrow(0, 0, 6).cpu(), at::arange(6)));
  at::Tensor other = at::empty({0}, grown.options());
  other.set_(grown.storage(), 2, {2, 2}, {2, 1});
  CHECK(at::equal(other.cpu(), at::arange(2, 6).view({2, 2})));
  CHECK(at::equal(other.t().cpu(), other.cpu().t()));
  CHECK(at::equal(other.to(at::kHalf).cpu(), other.cpu().to(at::kHalf)));
  CHECK_THROWS_WITH(other + at::ones({2, 2}), Catch::Contains("same device"));
}

TEST_CASE("what nobody wrote is not a number") {
  const at::Tensor fresh = at::empty({1000}, at::TensorOptions().device(gpu()));
  CHECK(at::isnan(fresh).all().item<bool>());
}

TEST_CASE("reading a value makes the host wait, and it is counted") {
  const at::Tensor one = at::ones({}, at::TensorOptions().device(gpu()));
  const Counters before = counters();
  CHECK((one + 1).item<float>() == 2);
  CHECK(counters().host_waits == before.host_waits + 1);
}

TEST_CASE("copies that block make the host wait, others do not") {
  const at::Tensor target = at::zeros({4}, at::TensorOptions().device(gpu()));
  at::Tensor source = at::ones({4}).pin_memory();
  const auto waits_of = [](const auto& copy) {
    const int64_t before = counters().host_waits;
    copy();
    return counters().host_waits - before;
  };
  CHECK(waits_of([&] { target.copy_(source, true); }) == 0);
  CHECK(waits_of([&] { target.copy_(source); }) == 1);
  CHECK(waits_of([&] { target.copy_(at::ones({4})); }) == 1);
  CHECK(waits_of([&] { source.copy_(target, true); }) == 0);
  CHECK(waits_of([&] { target.cpu(); }) == 1);
}

TEST_CASE("waiting for an event counts by what is launched behind it") {
  at::Tensor values = at::zeros({4}, at::TensorOptions().device(gpu()));
  const Counters before = counters();
  c10::Event event(gpu().type());
  event.record(current_stream());
  event.synchronize();
  CHECK(counters().host_waits == before.host_waits + 1);
  event.record(current_stream());
  values.fill_(1);
  event.synchronize();
  CHECK(counters().host_waits == before.host_waits + 1);
  CHECK(counters().waits_behind == before.waits_behind + 1);
}

TEST_CASE("a kernel's error comes out at a later call") {
  CHECK(run_apart("a kernel that fails") == 0);
}
TEST_CASE("a kernel that fails", "[.]") {
  const at::Tensor values = at::ones({4}, at::TensorOptions().device(gpu()));
  const auto index = at::full({1}, 7, values.options().dtype(at::kLong));
  CHECK_THROWS_WITH(at::index_select(values, 0, index).cpu(),
                    Catch::Contains("a kernel failed"));
}

TEST_CASE("a host access to device memory ends the process") {
  CHECK(run_apart("the host reads device memory") == kHostAccess);
}
TEST_CASE("the host reads device memory", "[.]") {
  const at::Tensor one = at::ones({1}, at::TensorOptions().device(gpu()));
  report_host_accesses();  // Catch2 has put its own handler in between
  CHECK(*one.const_data_ptr<float>() == 1);
}

// A second stream reads what the first one writes.
float read_on_another_stream(bool with_event) {
  const at::Tensor values = at::ones({4}, at::TensorOptions().device(gpu()));
  c10::Event written(gpu().type());
  written.record(current_stream());
  const c10::Stream stream = another_stream();
  if (with_event) written.block(stream);
  const c10::StreamGuard guard(stream);
  return values.sum().item<float>();
}
TEST_CASE("an event orders two streams") {
  CHECK(read_on_another_stream(true) == 4);
}
TEST_CASE("two streams without an event end the process") {
  CHECK(run_apart("a stream reads what another writes") == kFound);
}
TEST_CASE("a stream reads what another writes", "[.]") {
  read_on_another_stream(false);
}

// Memory that is freed while a second stream has yet to read it.
void free_under_another_stream(bool recorded) {
  at::Tensor values = at::ones({4}, at::TensorOptions().device(gpu()));
  c10::Event written(gpu().type());
  written.record(current_stream());
  const c10::Stream stream = another_stream();
  written.block(stream);
  {
    const c10::StreamGuard guard(stream);
    const at::Tensor sum = values.sum();
    if (recorded) values.record_stream(stream);
  }
  values.reset();
  const at::Tensor next = at::zeros({4}, at::TensorOptions().device(gpu()));
  CHECK(next.sum().item<float>() == 0);
}
TEST_CASE("memory recorded on a stream is not reused under it") {
  free_under_another_stream(true);
}
TEST_CASE("memory that is reused under a stream ends the process") {
  CHECK(run_apart("memory reused under a stream") == kFound);
}
TEST_CASE("memory reused under a stream", "[.]") {
  free_under_another_stream(false);
}

TEST_CASE("pinned memory written before its copy has ended is found") {
  CHECK(run_apart("the host writes under a copy") == kFound);
}
TEST_CASE("the host writes under a copy", "[.]") {
  setenv("FAKE_GPU_COPY_US", "50000", 1);
  gpu();
  at::Tensor source = at::ones({4}).pin_memory();
  const at::Tensor copy = source.to(gpu(), /*non_blocking=*/true);
  source.fill_(2);
  copy.cpu();
}

TEST_CASE("more than the device's memory is an error of its own") {
  gpu();
  CHECK_THROWS_AS(at::empty({static_cast<int64_t>(memory_bytes())},
                            at::TensorOptions().device(gpu())),
                  c10::OutOfMemoryError);
}

}  // namespace
}  // namespace fake_gpu
