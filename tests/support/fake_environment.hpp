// A test's environment, instead of the process's.
#pragma once

#include <map>
#include <string>

#include "chexnet/launch/environment.hpp"

namespace chexnet {

inline Environment fake(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace chexnet
