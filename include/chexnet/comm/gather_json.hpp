// An object with named fields from every rank, on every rank.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/json.hpp"

namespace chexnet {

// Collective: the JSON of all ranks [rank]. A rank with nothing to say passes
// null.
template <class AnyJson>
std::vector<AnyJson> gather_json(Communicator& comm, const AnyJson& mine) {
  std::vector<AnyJson> all;
  for (const auto& text : gather_text(comm, json_text(mine)))
    all.push_back(AnyJson::parse(text));
  return all;
}

}  // namespace chexnet
