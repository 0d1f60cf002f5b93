// doctor's rows as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chexnet/machine/health.hpp"

namespace chexnet {

std::string text_of(const std::vector<CheckResult>& checks);
nlohmann::ordered_json json_of(const std::vector<CheckResult>& checks);
std::vector<CheckResult> checks_of(const nlohmann::ordered_json& list);

}  // namespace chexnet
