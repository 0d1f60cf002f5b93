// What writing a pack and writing record shards have in common: the lock on the
// path, which items a rank has, and what its threads count.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/pack_job.hpp"

namespace chexnet {

// Counts of all threads of a rank.
struct PackCounts {
  std::atomic<uint64_t> done = 0, written = 0, kept = 0;  // images
  std::mutex mutex;                                       // guards damaged
  std::vector<std::string> damaged;                       // messages
};

// Memory that one thread keeps from image to image.
struct PackScratch {
  ImageReader::Scratch reader;
  std::vector<uint8_t> pixels;  // [crop, crop]
};

// How many of `all` items a rank has that takes every size-th.
uint64_t items_of_rank(uint64_t all, const Communicator& comm);

// The image's bytes and pixels in `scratch`; false, and noted, when it is
// damaged.
bool read_image(const ImageReader& reader, uint32_t row, PackCounts& counts,
                PackScratch& scratch);

// The sum of all ranks' work; DataError when more images are damaged than
// allowed. All ranks call.
PackResult total(const PackJob& job, Communicator& comm,
                 const PackCounts& counts);

// Calls `action` on rank 0 while the others wait; every rank throws when it
// throws.
void on_rank_0(Communicator& comm, const PackJob& job, const char* what,
               const std::function<void(WorkProgress&)>& action);

// Held by rank 0 while it and the others write. `out`: the path of --out.
FileLock lock_output(const std::filesystem::path& hidden,
                     const std::string& out);

// work(item, scratch) for each of `count` items, by all threads of this rank.
// All ranks call.
template <class Work>
void on_every_rank(Communicator& comm, const PackJob& job,
                   const PackCounts& counts, uint64_t count, const Work& work,
                   const std::function<void()>& show) {
  share_work(comm, {"packing", job.timeout_s}, [&](WorkProgress& progress) {
    uint64_t seen = 0;
    const auto tick = [&] {
      show();
      const uint64_t done = counts.done;
      if (done == seen) return;
      seen = done;
      progress.advance();
    };
    parallel_for_with<PackScratch>(count, job.threads, work, tick);
  });
}

}  // namespace chexnet
