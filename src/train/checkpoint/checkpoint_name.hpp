// Names of checkpoints in a run's folder checkpoints/: "step-00001234".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chexnet {

std::string checkpoint_name(int64_t step);  // step >= 0

// The step of such a name, as checkpoint_name() writes it. Any other name
// (step-00001234.broken-1, a person's step-00001234-good) gives none.
std::optional<int64_t> checkpoint_step(std::string_view name);

}  // namespace chexnet
