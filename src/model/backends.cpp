#include "aten/aten_backend.hpp"
#include "chexnet/model/backend.hpp"
#include "engine_backend.hpp"

namespace chexnet {

// The engine where it can: it is faster and its results do not depend on
// threads. ATen computes everything else and is the reference.
std::vector<BackendEntry> default_backends() {
  return {
      {engine_backend_refusal, make_engine_backend},
      {[](const BackendContext&, int64_t, int64_t) { return std::string(); },
       make_aten_backend},
  };
}

}  // namespace chexnet
