// Waits outside the steps of training, where the watchdog looks: for a GPU,
// which in LibTorch and the driver have no end when it hangs, and for images,
// which have none when storage does not answer.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "chexnet/comm/watch/wait_deadline.hpp"

namespace chexnet {

// Around the wait for a batch of images. One of more than `timeout_s`
// (launch.timeout_s) ends the process with exit code 7: "no batch of `what`
// came".
std::unique_ptr<WaitDeadline> images_deadline(double timeout_s,
                                              const std::string& what);

class DeviceDeadline {
 public:
  // A wait of more than `timeout_s` (launch.timeout_s) ends the process with
  // exit code 7: its error is "its GPU did not finish `what`", and it waits for
  // nothing else. Does nothing on a CPU.
  DeviceDeadline(c10::Device where, double timeout_s, const std::string& what);

  // Around calls that may wait for the device: copies to the host, and
  // launches, whose queue may be full.
  [[nodiscard]] WaitDeadline::Wait wait() {
    return WaitDeadline::Wait(deadline_.get());
  }

 private:
  std::unique_ptr<WaitDeadline> deadline_;  // null on a CPU
};

}  // namespace chexnet
