#include "deflate_loop.hpp"

namespace chexnet {

DeflateStep deflate_loop_bmi2(const DeflateTables& tables,
                              DeflatePosition& position) {
  return deflate_loop(tables, position);
}

}  // namespace chexnet
