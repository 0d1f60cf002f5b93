// One run at a time writes to a place in an object store: the object run.lock
// there names the process, and is written anew every few seconds while that
// lives. Where nothing was written for longer, its process is gone. One that
// ends says there that the place is free.
//
// On servers with conditional writes (If-None-Match, If-Match) two starts of
// the same moment cannot both take it. On others each reads back what it wrote
// a while ago, so the later one has it.
#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "chexnet/storage/object_store.hpp"

namespace chexnet {

class RemoteLock {
 public:
  // `id`: of the folder that writes; a lock with the same id is that of a
  // process before this one, as a folder has one process at a time.
  // CheckpointError when another one holds it. `tick` hears of life while that
  // is watched. `on_loss` is called once, on a thread of its own, when another
  // one took it while we could not be heard.
  RemoteLock(ObjectStore& store, std::string place, std::string id,
             const std::function<void()>& tick,
             std::function<void(const std::string& by)> on_loss);
  // The object stays, and names a process that may be gone.
  ~RemoteLock() = default;
  RemoteLock(const RemoteLock&) = delete;
  RemoteLock& operator=(const RemoteLock&) = delete;

  // Whether the folder with our id was the last that wrote there.
  bool was_ours() const { return was_ours_; }
  // Who has it now, if another one took it while we could not be heard; else
  // empty. Any thread.
  std::string taken_by();
  void release();  // free, and still with our id
  void remove();   // as if we had never been there

 private:
  [[noreturn]] void refuse(const std::string& who) const;
  bool is_held(const ObjectStore::Versioned& lock) const;  // by another one
  ObjectStore::Versioned watch(const ObjectStore::Versioned& held,
                               const std::function<void()>& tick);
  bool take(const std::string& version);
  void renew(const std::stop_token& stop);
  std::string text(bool is_free);
  ObjectStore& store_;
  const std::string path_, id_;
  bool was_ours_ = false;
  std::atomic<uint64_t> beat_ = 0;
  const std::function<void(const std::string&)> on_loss_;
  std::jthread renewal_;  // last: it uses all of them
};

}  // namespace chexnet
