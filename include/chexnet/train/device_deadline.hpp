// Waits for a GPU outside the steps of training, where the watchdog looks: in
// LibTorch and the driver they have no end when the GPU hangs.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "chexnet/watch/wait_deadline.hpp"

namespace chexnet {

class DeviceDeadline {
 public:
  // A wait of more than `timeout_s` (launch.timeout_s) ends the process with
  // exit code 7: its error is "its GPU did not finish `what`", and nothing
  // else is waited for. Nothing on a CPU.
  DeviceDeadline(c10::Device where, double timeout_s, const std::string& what);

  // Around what may wait for the device: copies to the host, and launches,
  // whose queue may be full.
  [[nodiscard]] WaitDeadline::Wait wait() {
    return WaitDeadline::Wait(deadline_.get());
  }

 private:
  std::unique_ptr<WaitDeadline> deadline_;  // null on a CPU
};

}  // namespace chexnet
