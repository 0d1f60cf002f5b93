// What every rank did and when, as a file that chrome://tracing and Perfetto
// open (Trace Event Format, JSON): a process for each rank, with a row for its
// main thread, one for each thread of its loader and one for each gradient
// bucket on the network; on rank 0 also when each rank was ready for the last
// gradients.
#pragma once

#include <cstddef>
#include <filesystem>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/core/profiler.hpp"

namespace chexnet {

// Spans that each of `ranks` may keep: some thousand steps, and fewer where the
// spans of all ranks would be more than one gather carries and a viewer opens.
size_t timeline_events(int ranks);

// The file's first bytes.
inline constexpr const char* kTimelineHead = "{\"displayTimeUnit\"";

// Seconds to add to this rank's steady clock to get rank 0's, to within the
// skew of a barrier. Collective.
double clock_offset_s(Communicator& comm);

// Gathers the recordings of all ranks and writes `path` on rank 0, where it
// throws CheckpointError if that fails. Collective.
void write_timeline(Communicator& comm, const Recording& recording,
                    double offset_s, const std::filesystem::path& path);

// The rows of one rank, by any of its threads, while others hang or are gone:
// what it has recorded so far, and the phase that it is in until now; null:
// none. CheckpointError.
void write_own_timeline(int rank, const Recording& recording,
                        const PhaseSlot* now,
                        const std::filesystem::path& path);

}  // namespace chexnet
