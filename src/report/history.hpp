// The course of a run from metrics.jsonl, as curves over the step.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "chexnet/report/plot.hpp"

namespace chexnet {

struct History {
  Curve train_loss{"training loss", {}, {}},
      val_loss{"validation loss", {}, {}},
      val_auroc{"validation mean AUROC", {}, {}}, images{"images/s", {}, {}},
      data_wait{"waiting for data", {}, {}},
      allreduce_wait{"waiting for other ranks", {}, {}};  // ms per step
  std::map<std::string, double> own_ms;  // of a step, by rank, at the end
};

// Empty curves where there is no such file.
History history_of(const std::filesystem::path& folder);

}  // namespace chexnet
