#include "device_deadline.hpp"

#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/timeouts.hpp"

namespace chexnet {

std::unique_ptr<WaitDeadline> images_deadline(double timeout_s,
                                              const std::string& what) {
  return hang_deadline(
      timeout_s + kImagesAfter_s,
      "[images] no batch of " + what + " came on " + host_name() + " for " +
          fixed(timeout_s, 0) +
          " s. Hint: does the storage answer? Else raise launch.timeout_s");
}

DeviceDeadline::DeviceDeadline(c10::Device where, double timeout_s,
                               const std::string& what) {
  if (where.is_cpu()) return;
  deadline_ = hang_deadline(
      timeout_s,
      "[cuda] its GPU did not finish " + what + " in " + fixed(timeout_s, 0) +
          " s. Hint: nvidia-smi shows whether the GPU still answers, dmesg "
          "shows Xid errors; work that really takes as long needs a larger "
          "launch.timeout_s");
}

}  // namespace chexnet
