// JSON of everything that people read: fields stay in the order in which they
// were set.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace chexnet {

using Json = nlohmann::ordered_json;

// JSON as text, always: bytes that are not UTF-8 (a column named in another
// encoding, a file name) become replacement characters, where nlohmann's dump()
// alone would throw.
template <class AnyJson>
std::string json_text(const AnyJson& json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace chexnet
