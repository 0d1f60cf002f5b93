// Streams that a thread captures, and the graphs that come of it: pieces of
// work, and the waits between streams. A launch of a graph enqueues the pieces
// anew, in the order of the capture, on the stream of the launch and on streams
// of the graph. Only the graph's waits order its pieces, and all of them come
// after the stream's earlier work and before its later work.
//
// What CUDA refuses while a thread captures (cudaStreamCaptureModeThreadLocal)
// is refused here: waits and queries of the host, new memory, pageable copies,
// waits for events that were recorded before, and branches that do not come
// back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "fakes/fake_cudart/race_detector.hpp"

namespace fake_cuda {

// A piece of work, made when it is enqueued: once, or at each launch of the
// graph that holds it.
using Maker = std::function<std::function<void()>()>;

// What a piece of work uses, of race_detector.hpp.
struct Uses {
  std::string what;
  std::vector<RaceDetector::Range> ranges;
};

// Of the calling thread.
bool is_capturing();
bool is_captured(cudaStream_t stream);
// For what CUDA refuses: notes the error, after which the capture gives nothing
// but errors.
cudaError_t refused(cudaError_t error);

// For the calls of the runtime, on a captured stream.
void keep_uses(Uses uses);  // of the piece that comes next
void keep_work(cudaStream_t stream, Maker make);
void keep_record(cudaStream_t stream, cudaEvent_t event, bool external);
// False where it is not for the capture: neither is captured.
bool keep_wait(cudaStream_t stream, cudaEvent_t event);

}  // namespace fake_cuda
