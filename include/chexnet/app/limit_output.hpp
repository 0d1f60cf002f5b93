// What limits a run, as `status` and `bench run` print it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "chexnet/core/json.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/train/run/diagnosis.hpp"

namespace chexnet {

struct LimitOutput {
  LimitReport report;
  Rows evidence;
  Json json;  // the same figures

  std::string text() const;
  Json whole_json() const;
};

}  // namespace chexnet
