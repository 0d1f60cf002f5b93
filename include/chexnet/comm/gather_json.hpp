// What every rank says of itself, on every rank: objects with named fields.
#pragma once

#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/json_text.hpp"

namespace chexnet {

// Collective: the JSON of all ranks [rank]. A rank with nothing to say passes
// null.
template <class Json>
std::vector<Json> gather_json(Communicator& comm, const Json& mine) {
  std::vector<Json> all;
  for (const auto& text : gather_text(comm, json_text(mine)))
    all.push_back(Json::parse(text));
  return all;
}

}  // namespace chexnet
