// A file is read in a separate process: GDCM ends the process on many a damaged
// file (failed assertions, endless tables), and nobody wants to lose a night's
// conversion to one of them. Nor may a file that takes over its reader get
// further than that process: it can read, and answer, but not write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "radiograph.hpp"

namespace chexnet {

struct WorkerLimits : RadiographLimits {
  int seconds = 120;  // a file may take, by the clock
};

struct Converted {
  Skip skip = Skip::kNone;
  Radiograph picture;          // without its pixels
  std::vector<std::byte> png;  // empty when skipped
};

// What `make` returns, in a separate process and within the limits; nothing
// where the process died or took too long. `make` can open files to read them
// and nothing more. For a process of one thread.
// OutageError: no further process.
struct ChildMessage {
  std::string text;
  bool late = false;
  int status = 0;  // as waitpid's
  // "took longer than 120 s", "its reader died: Segmentation fault"
  std::string death(const WorkerLimits& limits) const;
};
ChildMessage in_child(const WorkerLimits& limits,
                      const std::function<std::string()>& make);

// Of a message with several texts: each after its length. take() moves `at`
// past the text; std::out_of_range when the message was cut off.
void put(std::string& message, std::string_view text);
std::string take(const std::string& message, size_t& at);

// Whether this kernel lets workers give up all but reading
// (core/system_call_filter.hpp); a warning where not. Starts a process to find
// out.
bool workers_are_filtered();

// DataError as read_radiograph(), and for a file at which the worker died, or
// needed more memory or time than the limits give. For a process of one thread.
Converted convert_in_worker(const std::string& path,
                            const WorkerLimits& limits);

}  // namespace chexnet
