// Threads that fetch the bytes of coming samples while workers decode: on an
// object store a read is mostly waiting, so many must be in flight, many more
// than there are cores to decode.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "chexnet/core/recording.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/stream.hpp"

namespace chexnet {

class ReadAhead {
 public:
  // `threads` reads in flight, at most `slots` >= threads samples fetched and
  // not yet done.
  ReadAhead(const ImageSource& source, const Sampler& sampler, int threads,
            int slots);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Waits for the bytes of sample `ticket`; rethrows what fetching it threw.
  // Callers wait for tickets in any order within `slots` of each other; each
  // ends with done(). Null when stopped.
  const FetchedImage* wait(uint64_t ticket, const std::stop_token& stop);
  void done(uint64_t ticket);
  // Where the threads' spans go from now on; null: nowhere.
  void record(std::shared_ptr<Recording> recording);

 private:
  struct Slot {
    FetchedImage fetched;
    std::exception_ptr failure;
    uint64_t ticket = 0;  // whose turn it is
    bool ready = false;
  };
  void work(int thread, const std::stop_token& stop);

  const ImageSource& source_;
  const Sampler& sampler_;
  // Guards all below but the bytes of a slot that is being filled or used.
  std::mutex mutex_;
  std::condition_variable_any slot_free_, slot_ready_;
  std::vector<Slot> slots_;
  uint64_t next_ = 0;
  std::shared_ptr<Recording> recording_;
  // Last: they stop before the members they use are destroyed.
  std::vector<std::jthread> threads_;
};

}  // namespace chexnet
