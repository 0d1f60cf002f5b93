// NCCL's own words (NCCL_DEBUG=INFO, versions 2.4 to 2.30) about how ranks are
// connected: which pairs talk by NVLink or PCIe, through host memory, or over
// which network. Forms it does not know are counted, never fatal.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chexnet {

enum class LinkKind { kP2p, kSharedMemory, kInfiniBand, kSocket, kOtherNet };

struct NcclLink {
  std::string host;  // that wrote the line
  int channel = 0, from = 0, to = 0;
  enum class Side { kUnsaid, kSend, kReceive } side = Side::kUnsaid;
  LinkKind kind = LinkKind::kP2p;
  bool gpu_direct = false;  // the adapter reads GPU memory itself (GDRDMA)
  std::string via;          // "P2P/IPC", "NET/IB/0/GDRDMA"
};
// One line of the log; `unknown` is set where it speaks of a connection in a
// form not known.
std::optional<NcclLink> parse_nccl_line(const std::string& line, bool& unknown);

// Whether read_nccl_log() learns anything from a line, by a cheap test.
bool is_about_links(const std::string& line);

// What a log says of a pair of ranks, the worst of its channels.
struct NcclPair {
  int from = 0, to = 0;
  bool same_host = false;
  LinkKind kind = LinkKind::kP2p;
  bool gpu_direct = false;
  std::string via;
  int channels = 0;
  bool ring = false, tree = false;  // which of the two use the pair
  // "what is slow: what to check"; empty: as good as it gets for such a pair.
  std::string concern;
  // Faster hardware is there: NVLink between the two GPUs, InfiniBand in both
  // hosts, or the memory of the host that both are in.
  bool avoidable = false;
};
struct NcclReport {
  std::vector<NcclPair> pairs;  // by from, to
  int channels = 0;             // of a collective; 0: not said
  size_t links = 0, unknown = 0;
  std::string not_recorded;  // why there was no log to read
};
// The lines of all ranks' logs, rank after rank. `infiniband`: [rank] whether
// the rank's host has InfiniBand that is up; empty: not known.
NcclReport read_nccl_log(const std::vector<std::string>& lines,
                         const std::vector<bool>& infiniband = {});

}  // namespace chexnet
