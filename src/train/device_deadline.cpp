#include "chexnet/train/device_deadline.hpp"

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/watch/hard_exit.hpp"

namespace chexnet {

DeviceDeadline::DeviceDeadline(c10::Device where, double timeout_s,
                               const std::string& what) {
  if (where.is_cpu()) return;
  deadline_ = std::make_unique<WaitDeadline>(timeout_s, [timeout_s, what] {
    constexpr int kLogTimeout_s = 5;  // the log may hang, too
    constexpr auto kCode = static_cast<int>(ExitCode::kHang);
    exit_within(kLogTimeout_s, kCode);
    log_error("[cuda] its GPU did not finish " + what + " in " +
              fixed(timeout_s, 0) +
              " s. Hint: nvidia-smi shows whether the GPU still answers, dmesg "
              "shows Xid errors; work that really takes as long needs a larger "
              "launch.timeout_s");
    exit_and_end_launcher(kCode);
  });
}

}  // namespace chexnet
