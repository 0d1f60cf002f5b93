#include "chexnet/train/self_test.hpp"

#include <ATen/ATen.h>

#include <cstdlib>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/forwarding_communicator.hpp"
#include "support/planted_backend.hpp"
#include "support/thread_world.hpp"
#include "train/device_self_test.hpp"

using namespace chexnet;

namespace {

constexpr double kTimeout_s = 600;
const SelfTestSubject kSubject{.arch = "densenet121",
                               .precision = Precision::kBf16};

// Adds to one element of the second gradient buffer that travels.
class WrongSum final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void start(const GradientBuffer& buffer) override {
    if (started_++ == 1) static_cast<float*>(buffer.data)[5] += 0.25f;
    ForwardingCommunicator::start(buffer);
  }

 private:
  int started_ = 0;
};

class CountedGathers final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void gather(const double* own, double* all, size_t count) override {
    ++gathers;
    ForwardingCommunicator::gather(own, all, count);
  }
  int gathers = 0;
};

}  // namespace

TEST_CASE("the self-test passes where the layers are right, in both types") {
  const auto solo = solo_communicator();
  const SelfTestResult result =
      self_test(kSubject, at::kCPU, *solo, kTimeout_s);
  INFO(result.problem());
  CHECK(result.problem().empty());
  REQUIRE(result.steps.size() == 2);
  CHECK(result.steps[0].precision == Precision::kFp32);
  CHECK(result.steps[1].precision == Precision::kBf16);
  CHECK(result.reduction.difference == 0);
  CHECK(result.summary().starts_with("fp32 worst "));
}

TEST_CASE("the self-test names the layer that is wrong") {
  const auto solo = solo_communicator();
  SelfTestSubject subject = kSubject;
  subject.precision = Precision::kFp32;
  const SelfTestResult result = self_test(
      subject, at::kCPU, *solo, kTimeout_s,
      planted({.scaled_gradient = "features.norm5.weight", .factor = 1.5}));
  CHECK(result.problem().starts_with(
      "fp32: gradients of features.norm5 differ by "));
}

TEST_CASE("ranks that synchronize BatchNorm test it so") {
  SelfTestSubject subject = kSubject;
  subject.precision = Precision::kFp32;
  subject.sync_batchnorm = true;
  const auto problem = [&](const std::vector<BackendEntry>& backends) {
    std::string of_rank_1;
    int gathers = 0;
    ThreadWorld(2).run([&](Communicator& comm) {
      CountedGathers counted(comm);
      const auto result =
          self_test(subject, at::kCPU, counted, kTimeout_s, backends);
      if (comm.rank() != 1) return;
      of_rank_1 = result.problem();
      gathers = counted.gathers;
    });
    // Forward and backward of 121 layers; the reference calls all_gather().
    CHECK(gathers == 2 * 121);
    return of_rank_1;
  };
  CHECK(problem(default_backends()).empty());
  CHECK(problem(planted({.scaled_gradient = "features.norm5.weight",
                         .factor = 1.5}))
            .starts_with("fp32: gradients of features.norm5 differ by "));
}

TEST_CASE("the self-test holds the all-reduce to its definition") {
  const auto reduced = [](bool wrong) {
    ReductionCheck of_rank_0;
    ThreadWorld(3).run([&](Communicator& comm) {
      WrongSum wrong_sum(comm);
      Communicator& used = wrong ? wrong_sum : comm;
      const auto check =
          check_reduction(GradientCompression::kNone, at::kCPU, used);
      if (comm.rank() == 0) of_rank_0 = check;
    });
    return of_rank_0;
  };
  CHECK(reduced(false).difference <= reduced(false).allowed);
  CHECK(reduced(true).difference == Approx(0.25 / 15));
  CHECK(reduced(true).difference > reduced(true).allowed);
}

TEST_CASE("a device is tested at its first run and not again") {
  const ScratchFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const auto solo = solo_communicator();
  const SelfTestSubject subject{.arch = "densenet121", .own_kernels = false};
  const TestedDevice tested{at::kCPU, "GPU A of node1", "GPU A, driver 1"};
  int made = 0;
  const auto counted = [&](double factor) {
    auto backends =
        planted({.scaled_gradient = "features.conv0.weight", .factor = factor});
    const auto make = backends[0].make;
    backends[0].make = [&made, make](const BackendContext& context) {
      ++made;
      return make(context);
    };
    return backends;
  };
  const std::string text = error_of<DeviceError>(
      [&] { self_test_once(subject, tested, *solo, kTimeout_s, counted(2)); });
  CHECK(
      text.starts_with("[self-test] GPU A of node1 computes wrongly. "
                       "densenet121, fp32: gradients of features.conv0 "));
  self_test_once(subject, tested, *solo, kTimeout_s, counted(1));
  CHECK(made == 2);  // what failed was not remembered
  self_test_once(subject, tested, *solo, kTimeout_s, counted(2));
  CHECK(made == 2);
  unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("where our kernels disagree, LibTorch's are tested and compute") {
  const ScratchFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const auto solo = solo_communicator();
  const SelfTestSubject subject{.arch = "densenet121"};
  const TestedDevice tested{at::kCPU, "GPU A of node1", "GPU A, driver 1"};
  // The network `bad` of those that are made computes a wrong gradient.
  const auto own_kernels = [&](int bad) {
    auto backends = planted({});
    const auto wrong =
        planted({.scaled_gradient = "features.conv0.weight", .factor = 2})[0]
            .make;
    const auto right = backends[0].make;
    int made = 0;
    backends[0].make = [&](const BackendContext& context) {
      return ++made == bad ? wrong(context) : right(context);
    };
    return self_test_once(subject, tested, *solo, kTimeout_s, backends);
  };
  CHECK_FALSE(own_kernels(1));  // ours: the second network is LibTorch's
  CHECK(own_kernels(2));        // what failed was not remembered
  CHECK(own_kernels(1));        // what passed was
  unsetenv("XDG_CACHE_HOME");
}
