// A run's summary of the transports between its GPUs: pairs of ranks that are
// connected alike are one entry, so that a large run's is as short as a small
// one's.
#pragma once

#include <string>
#include <vector>

#include "chexnet/comm/nccl_log.hpp"
#include "chexnet/comm/placement.hpp"
#include "chexnet/core/json.hpp"

namespace chexnet {

// Fields: docs/json.md, `transports`. Empty where NCCL connected nothing.
Json transports_json(const NcclReport& report);
// "8 channels; P2P/IPC: 6 pairs, SHM/direct/direct: 2 pairs".
std::string transports_text(const NcclReport& report);
// Pairs that faster hardware would connect, and what to check. `ranks`: [rank].
std::vector<std::string> transport_warnings(
    const NcclReport& report, const std::vector<PlacementRow>& ranks);

}  // namespace chexnet
