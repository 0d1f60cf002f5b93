// bf16 has fp32's range, so it needs no loss scale; GPUs before sm_80 cannot
// compute in it and get fp16, which needs one.
#include "chexnet/train/network_options.hpp"

namespace chexnet {

Precision resolve_precision(std::optional<Precision> asked,
                            const Device& device) {
  if (asked) return *asked;
  if (device.cuda == nullptr) return Precision::kFp32;
  return device.gpu.major >= 8 ? Precision::kBf16 : Precision::kFp16;
}

NetworkOptions network_options(const Config& config, const Device& device,
                               Communicator& comm) {
  return {.device = device.where,
          .precision = resolve_precision(config.train.precision, device),
          .sync_batchnorm =
              config.model.sync_batchnorm && comm.size() > 1 ? &comm : nullptr,
          .freeze_backbone = config.model.freeze_backbone,
          .own_engine = config.train.engine != EngineKind::kAten,
          .winograd = config.train.convolutions != ConvolutionKind::kDirect,
          .mean = config.data.mean,
          .std = config.data.std};
}

}  // namespace chexnet
