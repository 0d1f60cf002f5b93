// doctor's rows as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chexnet/core/json.hpp"
#include "chexnet/launch/machine/health.hpp"

namespace chexnet {

std::string text_of(const std::vector<CheckResult>& checks);
Json json_of(const std::vector<CheckResult>& checks);
std::vector<CheckResult> checks_of(const Json& list);

}  // namespace chexnet
