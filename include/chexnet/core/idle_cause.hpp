// What a rank was in while its GPU was idle.
#pragma once

namespace chexnet {

// kHost: none of the others, so its host had not launched work.
enum class IdleCause {
  kInput,
  kHost,
  kCommunication,
  kCheckpoint,
  kEvaluation
};
inline constexpr int kIdleCauses = 5;

}  // namespace chexnet
