// From config and device to the options of a network.
#pragma once

#include <optional>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/train/device.hpp"

namespace chexnet {

// A precision that the config leaves out is bf16 from sm_80 on, fp16 on older
// GPUs, fp32 on CPU.
Precision resolve_precision(std::optional<Precision> asked,
                            const Device& device);
// DeviceError on every rank where one of them cannot compute in it. Collective.
void check_precision(Precision precision, const Device& device,
                     Communicator& comm);

// Whether the CPU engine or a GPU's own kernels may compute, beside ATen's
// operators: unless train.engine=aten, or the device lacks them.
bool own_engine_on(const Device& device, EngineKind asked);

// Whether model.memory=recompute has an effect: our own kernels on a GPU, and a
// backbone that trains.
bool can_recompute(const NetworkOptions& options);

// The network a run of this config computes with: back end, precision,
// statistics shared by `comm`. Collective; errors of check_precision.
NetworkOptions network_options(const Config& config, const Device& device,
                               Communicator& comm);

}  // namespace chexnet
