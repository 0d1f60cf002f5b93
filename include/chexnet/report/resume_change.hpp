// Something that decides what a run learns, other from `step` on than before.
#pragma once

#include <cstdint>
#include <string>

namespace chexnet {

struct ResumeChange {
  int64_t step = 0;
  std::string what, before, after;  // "train.epochs", "100", "5"
};

}  // namespace chexnet
