// Which steps of a run go into a timeline, and when it is written:
//
//   train --timeline FILE                  the whole run, at its end
//   train --timeline FILE --steps 200:220  these steps, after the last of them
//   touch RUN/TIMELINE                     the next 20 steps, after the last of
//                                          them, into RUN/timeline.json
//
// All ranks call the same in the same order, on their main threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"
#include "chexnet/train/run/overlap.hpp"

namespace chexnet {

// Steps of a run, from 1 on, both ends included.
struct StepWindow {
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
};
// Of "FIRST:LAST". ConfigError.
StepWindow step_window(const std::string& text);

class TimelineRecorder {
 public:
  struct Request {
    std::filesystem::path file;  // of --timeline; empty: none
    std::optional<StepWindow> steps;
  };
  // Records from now on where the whole run is wanted. The references must
  // outlive the object.
  TimelineRecorder(Communicator& comm, Profiler& profiler, Request request,
                   std::filesystem::path run_folder);

  // Rank 0: somebody has made the file TIMELINE. One look at the file system.
  bool asked() const;
  // Once the ranks agreed in step `step` to record a timeline: removes the file
  // that requests it.
  void take_request(int64_t step);
  // Whether begin_step(), or end_step(), of `step` begins or ends a recording
  // of some steps. Waits for a device before: then the recording has exactly
  // its work of these steps.
  bool begins_at(int64_t step) const;
  bool ends_at(int64_t step) const { return now_ && step >= now_->steps.last; }
  // `times`: up to this step. True: the profiler has another recording, which
  // the loader is to get.
  bool begin_step(int64_t step, const StepTimes& times);
  // The same. Collective where it is true: the timeline was written, or a
  // warning says why not.
  bool end_step(int64_t step, const StepTimes& times);
  // The end of the run: writes what is not in a file yet, or warns. Collective.
  void finish();

 private:
  struct Window {
    std::filesystem::path file;
    StepWindow steps;
  };
  void start(const Window& window);
  void write();
  bool first_rank() const { return comm_.rank() == 0; }

  Communicator& comm_;
  Profiler& profiler_;
  std::filesystem::path run_folder_;
  std::optional<Window> given_;  // by --steps, and still to come
  std::optional<Window> asked_;  // by TIMELINE, and still to come
  std::optional<Window> now_;    // is recorded
  StepTimes times_;              // before it
  bool looks_ = true;            // for TIMELINE
};

}  // namespace chexnet
