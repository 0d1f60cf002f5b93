// The transports that NCCL chooses in its start, from its log, without a log
// that goes on for the whole run. One per process, on the thread that starts
// NCCL, before its first call there.
#pragma once

#include <filesystem>
#include <string>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/comm/nccl_log.hpp"

namespace chexnet {

class NcclRecording {
 public:
  // Sets NCCL_DEBUG and what belongs to it, unless the user did, in the
  // environment or in a nccl.conf.
  NcclRecording();
  // Unsets what the constructor set; NCCL's later output goes nowhere.
  ~NcclRecording();
  NcclRecording(const NcclRecording&) = delete;
  NcclRecording& operator=(const NcclRecording&) = delete;

  // After NCCL's start. Collective over the ranks of NCCL, equal on all. Throws
  // only errors of `comm`: others are in `not_recorded`. `wants_infiniband`:
  // false where the user chose another network.
  NcclReport read(Communicator& comm, bool wants_infiniband);

 private:
  std::string stop();  // the lines about links
  std::string problem_;
  int log_ = -1;  // a file in memory; -1: nothing is recorded (any more)
};

// Whether this host has an InfiniBand port that is up.
bool has_active_infiniband(
    const std::filesystem::path& adapters = "/sys/class/infiniband");

}  // namespace chexnet
