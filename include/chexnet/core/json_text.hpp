// JSON as text, always: what is not UTF-8 (a column named in another encoding,
// a file name) becomes replacement characters, where nlohmann's dump() alone
// would throw.
#pragma once

#include <string>

namespace chexnet {

template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace chexnet
