// What a rank did while its GPU was idle.
#pragma once

#include <array>
#include <cstddef>

namespace chexnet {

// kHost: none of the others, so its host had not launched work.
enum class IdleCause {
  kInput,
  kHost,
  kCommunication,
  kCheckpoint,
  kEvaluation
};
// As metrics.jsonl and JSON name them.
inline constexpr std::array<const char*, 5> kIdleCauseNames = {
    "input", "host", "communication", "checkpoint", "evaluation"};
inline constexpr size_t kIdleCauses = kIdleCauseNames.size();

}  // namespace chexnet
