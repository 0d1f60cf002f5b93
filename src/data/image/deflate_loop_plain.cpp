#include "deflate_loop.hpp"

namespace chexnet {

DeflateStep deflate_loop_plain(const DeflateTables& tables,
                               DeflatePosition& position) {
  return deflate_loop(tables, position);
}

}  // namespace chexnet
