#include "support/source_file.hpp"

namespace chexnet {

std::string source_file(const std::string& name) {
  return CHEXNET_SOURCE_DIR "/" + name;
}

}  // namespace chexnet
