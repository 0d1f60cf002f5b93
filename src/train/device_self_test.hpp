// The self-test at the first run on a GPU: once for each GPU model, driver and
// build, for each user.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/self_test.hpp"

namespace chexnet {

// What identifies a rank's device.
struct TestedDevice {
  at::Device where = at::kCPU;
  std::string place;  // for people: model, UUID and host
  // All that its results depend on: model, driver, libraries and this program.
  std::string identity;
};
TestedDevice tested_device(const Device& device);  // device.cuda is not null

// Collective, before training. Self-test on all ranks where any rank's device
// has not passed for this user. Returns whether our kernels may compute there:
// where they disagree on any device, a warning names the layer and LibTorch's
// are tested alone. DeviceError on every rank when those disagree on any
// device; the text of that one names device, layer and difference. `timeout_s`
// as of self_test().
bool self_test_once(
    const SelfTestSubject& subject, const TestedDevice& tested,
    Communicator& comm, double timeout_s,
    const std::vector<BackendEntry>& backends = default_backends());

}  // namespace chexnet
