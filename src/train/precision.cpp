// bf16 has fp32's range, so it needs no loss scale; GPUs before sm_80 cannot
// compute in it and get fp16, which needs one.
#include "chexnet/train/precision.hpp"

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

constexpr int kFirstWithBf16 = 8;  // sm_80

}  // namespace

Precision resolve_precision(std::optional<Precision> asked,
                            const Device& device) {
  // A CPU has no TF32: what it computes is fp32, and is called so.
  if (asked == Precision::kTf32 && device.where.is_cpu())
    return Precision::kFp32;
  if (asked) return *asked;
  if (device.where.is_cpu()) return Precision::kFp32;
  return device.gpu.major >= kFirstWithBf16 ? Precision::kBf16
                                            : Precision::kFp16;
}

// Older GPUs would compute bf16 without tensor cores, by kernels that are
// slower than fp32's.
void check_precision(Precision precision, const Device& device,
                     Communicator& comm) {
  const bool cannot = precision == Precision::kBf16 && !device.where.is_cpu() &&
                      device.gpu.major < kFirstWithBf16;
  if (!any_rank(comm, cannot)) return;
  const std::string has =
      cannot ? formatted("{} has a {} (sm_{}{})", host_name(), device.gpu.name,
                         device.gpu.major, device.gpu.minor)
             : "another rank has an older one";
  throw DeviceError(
      "[device] train.precision=bf16 needs a GPU from sm_80 on, and {}. Hint: "
      "train.precision=fp16, which scales the loss by itself",
      has);
}

bool own_engine_on(const Device& device, EngineKind asked) {
  return asked != EngineKind::kAten &&
         (device.where.is_cpu() || device.own_kernels);
}

bool can_recompute(const NetworkOptions& options) {
  return options.own_engine && !options.device.is_cpu() &&
         options.precision != Precision::kFp64 &&
         options.frozen != FrozenPart::kBackbone;
}

NetworkOptions network_options(const Config& config, const Device& device,
                               Communicator& comm) {
  const Precision precision = resolve_precision(config.train.precision, device);
  check_precision(precision, device, comm);
  NetworkOptions options{
      .device = device.where,
      .precision = precision,
      .sync_batchnorm =
          config.model.sync_batchnorm && comm.size() > 1 ? &comm : nullptr,
      .frozen = config.model.always_frozen(),
      .own_engine = own_engine_on(device, config.train.engine),
      .winograd = config.train.engine != EngineKind::kDirect,
      .deterministic = config.train.deterministic,
      .mean = config.data.mean,
      .std = config.data.std};
  const bool asked = config.model.memory == ActivationMemory::kRecompute &&
                     !device.where.is_cpu();
  options.recompute = asked && can_recompute(options);
  if (asked && !options.recompute && comm.rank() == 0)
    log_warning(
        "[train] model.memory=recompute has no effect: " +
        std::string(options.frozen == FrozenPart::kBackbone
                        ? "a frozen backbone keeps nothing for backward"
                        : "LibTorch's kernels compute in place of ours"));
  return options;
}

}  // namespace chexnet
