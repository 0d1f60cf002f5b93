// Sends the folder of a run to its place in an object store while it is
// written: checkpoints as soon as they are there, everything else at intervals,
// and all of it at the end. What fails is tried again later; the run goes on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chexnet/data/image_index.hpp"
#include "chexnet/storage/object_store.hpp"

namespace chexnet {

class RemoteLock;

class RunMirror {
 public:
  // Takes the lock of `place`. `folder` exists and is locked by this process.
  // Where another folder wrote there last, what is in `folder` is moved aside,
  // and it gets what a resume needs when `fetches`. CheckpointError when
  // another run writes there, or when it holds a run and `fetches` is not set;
  // AbsentError and OutageError of the store.
  struct Place {
    std::string place;  // s3://bucket/prefix
    std::filesystem::path folder;
    bool fetches = false;
  };
  RunMirror(std::unique_ptr<ObjectStore> store, Place place, const Tick& tick);
  // Without finish(), what was not sent stays in the folder alone.
  ~RunMirror();
  RunMirror(const RunMirror&) = delete;
  RunMirror& operator=(const RunMirror&) = delete;

  // From here on the folder holds a run, and is sent.
  void begin();
  // To be called on the thread that writes checkpoints, between two changes.
  void checkpoints_changed();
  // Sends what is left and frees the place. CheckpointError with the folder
  // where that failed.
  void finish(const Tick& tick);

 private:
  // All checkpoints of one moment: links to their files, which are replaced but
  // never changed.
  struct Snapshot {
    std::filesystem::path folder;
    std::map<std::string, std::string> links;  // last, best -> step
  };
  using Changed = std::map<std::string, std::string>;  // name -> size and time

  void require_no_other_run();
  void take_place(const Tick& tick);
  void free_place();
  void read_sent_checkpoints(const Tick& tick);
  void run(const std::stop_token& stop);
  void send_snapshot(const std::stop_token& stop, const Tick& tick);
  void send_step(const std::filesystem::path& step, const std::stop_token& stop,
                 const Tick& tick);
  void remove_old_steps(const Snapshot& snapshot, const Tick& tick);
  void send_records(const std::stop_token& stop, const Tick& tick);
  void require_ours();
  std::string at(const std::string& name) const { return at_ + "/" + name; }

  const std::unique_ptr<ObjectStore> own_store_;
  ObjectStore& store_;
  const std::string at_;
  const std::filesystem::path folder_;
  const bool fetches_;
  std::unique_ptr<RemoteLock> lock_;
  bool has_run_ = false;  // the place, when this started
  bool begun_ = false;
  std::map<std::string, std::string> sent_steps_;  // name -> state.json
  std::map<std::string, std::string> sent_links_;
  Changed sent_records_;
  uint64_t snapshots_ = 0;
  std::mutex mutex_;  // guards the next
  std::unique_ptr<Snapshot> pending_;
  std::condition_variable_any changed_;
  std::jthread thread_;  // last: it uses all of them
};

}  // namespace chexnet
