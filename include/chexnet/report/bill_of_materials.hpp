// What the program is made of: for people who must know which library of which
// version runs at their site.
#pragma once

#include <string>
#include <vector>

#include "chexnet/core/json.hpp"

namespace chexnet {

struct Component {
  std::string name, version, license, home;  // license: an SPDX expression
  std::string program = "chexnet-train";     // that it is in
};
// Of this build; a version that could not be found out is empty.
std::vector<Component> components();

// {"name", "version", "cuda_variant", "gpu_architectures", "compiler",
// "components": [..]}
Json version_json();

}  // namespace chexnet
