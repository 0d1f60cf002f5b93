// The lines of a metrics.jsonl, whoever wrote them: a crash may have left one
// incomplete, and a run folder may belong to somebody else.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace chexnet {

// Calls `use` with each whole line that is a JSON object and its text (with its
// end). Passed over: other lines, and those whose fields are of other types
// than a run writes (docs/json.md). Returns how many whole lines it passed
// over.
int64_t for_each_event(const std::string& text,
                       const std::function<void(const nlohmann::json& event,
                                                const std::string& line)>& use);

}  // namespace chexnet
