#include "chexnet/comm/nccl_log.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace chexnet {
namespace {

// Slower ones last.
int rank_of(const NcclLink& link) {
  switch (link.kind) {
    case LinkKind::kP2p:
      return 0;
    case LinkKind::kSharedMemory:
      return 1;
    case LinkKind::kInfiniBand:
      return link.gpu_direct ? 2 : 3;
    case LinkKind::kOtherNet:
      return 4;
    case LinkKind::kSocket:
      return 5;
  }
  return 5;
}

NcclLink::Side side_of(const std::string& word) {
  if (word == "send") return NcclLink::Side::kSend;
  if (word == "receive") return NcclLink::Side::kReceive;
  return NcclLink::Side::kUnsaid;
}

LinkKind net_kind(const std::string& plugin) {
  // NVIDIA's plugins for InfiniBand are IBext, IBext_v8 and so on.
  if (plugin.starts_with("IB")) return LinkKind::kInfiniBand;
  if (plugin == "Socket") return LinkKind::kSocket;
  return LinkKind::kOtherNet;
}

constexpr const char* kThroughHost =
    "through host memory instead of NVLink or PCIe: NCCL_P2P_DISABLE or "
    "NCCL_P2P_LEVEL set, IOMMU or ACS on, or the GPUs are hidden from each "
    "other by cgroups or by containers (--ipc=host)";
constexpr const char* kNetInsideHost =
    "over the network inside one host: NCCL_P2P_DISABLE and NCCL_SHM_DISABLE "
    "set, /dev/shm too small, or containers that do not share it (--ipc=host)";
constexpr const char* kSockets =
    "over TCP sockets: is InfiniBand up (ibstat), NCCL_IB_DISABLE or NCCL_NET "
    "set, another adapter named by NCCL_IB_HCA, or libibverbs missing in the "
    "container?";

std::string concern_of(const NcclPair& pair) {
  if (pair.same_host && pair.kind == LinkKind::kP2p) return "";
  if (pair.same_host)
    return pair.kind == LinkKind::kSharedMemory ? kThroughHost : kNetInsideHost;
  if (pair.kind == LinkKind::kSocket) return kSockets;
  if (pair.kind == LinkKind::kInfiniBand && !pair.gpu_direct)
    return "InfiniBand without GPUDirect RDMA: nvidia-peermem loaded?";
  return "";
}

// Which GPUs are joined by NVLink, from the drawing of a host's topology
// (ncclTopoPrint, subsystem GRAPH, since 2.5). A GPU's links stand below it:
//
//   + PCI[24.0] - GPU/0-1a000 (3)
//                 + NVL[240.0] - NVS/0-0
//
// 3 is the rank. A link leads to a switch, which joins all, or to a GPU.
class NvLinks {
 public:
  void take(const std::string& host, const std::string& line) {
    static const std::regex kGpu(
        R"( - GPU/([0-9A-Fa-f-]{1,32}) \((\d{1,9})\))");
    static const std::regex kLink(
        R"(\+ NVL\[[0-9.]{1,16}\] - ((?:GPU|NVS)/[0-9A-Fa-f-]{1,32}))");
    std::smatch match;
    if (std::regex_search(line, match, kLink)) {
      if (match[1].str().starts_with("NVS"))
        switched_.insert(below_);
      else
        ends_.insert({below_, host + " " + match[1].str()});
    } else if (std::regex_search(line, match, kGpu)) {
      below_ = std::stoi(match[2]);
      name_of_[below_] = host + " GPU/" + match[1].str();
    }
  }
  // Of two ranks of one host.
  bool join(int a, int b) const {
    if (switched_.contains(a) && switched_.contains(b)) return true;
    const auto name = name_of_.find(b);
    return name != name_of_.end() && ends_.contains({a, name->second});
  }

 private:
  int below_ = -1;
  std::set<int> switched_;
  std::set<std::pair<int, std::string>> ends_;
  std::map<int, std::string> name_of_;  // bus ids repeat from host to host
};

// Which pairs the rings and trees of all channels use.
class Algorithms {
 public:
  // "Ring 00 : 3 -> 0 -> 1", "Trees [0] 1/2/-1->0->-1 [1] 3/-1/-1->0->2": the
  // ranks before and after that of the line. 2.4 to 2.6 have the two of a tree
  // the other way round; data travel both ways.
  void take(const std::string& line) {
    static const std::regex kRing(
        R"(Ring \d{1,9} : -?\d{1,9} -> (\d{1,9}) -> (\d{1,9})\s*$)");
    static const std::regex kTree(
        R"(((?:-?\d{1,9}/?){1,3})->(\d{1,9})->((?:-?\d{1,9}/?){1,3}))");
    static const std::regex kRank(R"(\d{1,9})");
    std::smatch match;
    if (std::regex_search(line, match, kRing))
      ring_.insert({std::stoi(match[1]), std::stoi(match[2])});
    if (line.find(" Trees ") == std::string::npos) return;
    const std::sregex_iterator end;
    for (std::sregex_iterator tree(line.begin(), line.end(), kTree);
         tree != end; ++tree) {
      const int rank = std::stoi((*tree)[2]);
      const std::string others = (*tree)[1].str() + " " + (*tree)[3].str();
      for (std::sregex_iterator other(others.begin(), others.end(), kRank);
           other != end; ++other) {
        if (other->prefix().str().ends_with('-')) continue;  // -1: nobody
        tree_.insert({rank, std::stoi(other->str())});
        tree_.insert({std::stoi(other->str()), rank});
      }
    }
  }
  bool ring(int from, int to) const { return ring_.contains({from, to}); }
  bool tree(int from, int to) const { return tree_.contains({from, to}); }

 private:
  std::set<std::pair<int, int>> ring_, tree_;
};

// The regular expressions take a stack frame for each character.
constexpr size_t kLongestLine = 2048;

std::string host_of_line(const std::string& line) {
  static const std::regex kHost(
      R"(([A-Za-z0-9_.-]+):\d+:\d+ (?:\[\d+\] )?NCCL INFO)");
  std::smatch match;
  return std::regex_search(line, match, kHost) ? match[1].str() : "";
}

bool is_at(const std::vector<bool>& flags, int rank) {
  return rank >= 0 && static_cast<size_t>(rank) < flags.size() &&
         flags[static_cast<size_t>(rank)];
}

}  // namespace

std::optional<NcclLink> parse_nccl_line(const std::string& line,
                                        bool& unknown) {
  unknown = false;
  if (line.find("NCCL INFO") == std::string::npos ||
      line.find(" via ") == std::string::npos)
    return std::nullopt;
  if (line.size() > kLongestLine) {
    unknown = true;
    return std::nullopt;
  }
  // NCCL's sources, transport/*.cc and transport.cc, 2.4.8 to 2.30.
  static const std::regex kForm(
      R"((Ring|Channel) (\d{1,9})(?:/\d+)? : (\d{1,9})(?:\[[0-9a-f]+\])? -> (\d{1,9})(?:\[[0-9a-f]+\])?)"
      R"((?: \[(send|receive)\])? via )"
      R"((P2P/(?:IPC|CUMEM|MNNVL|direct pointer|common device|indirect/\d+\[[0-9a-f]+\]))"
      R"((?:/read)?(?:/CE)?|SHM/(?:direct|CE)(?:/(?:direct|CE))?|direct shared memory)"
      R"(|NET/([^/]+)/\d+(?:\(\d+\))?(/GDRDMA)?(?:\(PCI\))?(?:/Shared)?)\s*$)");
  static const std::regex kConnection(R"((Ring|Channel) \d+.* -> )");
  std::smatch match;
  if (!std::regex_search(line, match, kForm)) {
    unknown = std::regex_search(line, kConnection);
    return std::nullopt;
  }
  NcclLink link;
  link.channel = std::stoi(match[2]);
  link.from = std::stoi(match[3]);
  link.to = std::stoi(match[4]);
  link.side = side_of(match[5]);
  link.via = match[6];
  if (link.via.starts_with("P2P"))
    link.kind = LinkKind::kP2p;
  else if (link.via.starts_with("NET"))
    link.kind = net_kind(match[7]);
  else
    link.kind = LinkKind::kSharedMemory;
  link.gpu_direct = match[8].matched;
  link.host = host_of_line(line);
  return link;
}

bool is_about_links(const std::string& line) {
  static constexpr std::array<std::string_view, 6> kWords = {
      " via ", " Trees ", "INFO Ring ", " coll channels", " - GPU/", "+ NVL["};
  return line.size() <= kLongestLine &&
         std::ranges::any_of(kWords, [&](std::string_view word) {
           return line.find(word) != std::string::npos;
         });
}

NcclReport read_nccl_log(const std::vector<std::string>& lines,
                         const std::vector<bool>& infiniband) {
  static const std::regex kChannels(R"( (\d{1,9}) coll channels)");
  NcclReport report;
  NvLinks nvlinks;
  Algorithms algorithms;
  std::map<int, std::string> host_of;
  std::map<std::pair<int, int>, NcclLink> worst;
  std::map<std::pair<int, int>, std::set<int>> channels;
  for (const auto& line : lines) {
    bool unknown = false;
    const auto link = parse_nccl_line(line, unknown);
    report.unknown += unknown ? 1 : 0;
    if (!link && is_about_links(line)) {
      nvlinks.take(host_of_line(line), line);
      algorithms.take(line);
      std::smatch match;
      if (std::regex_search(line, match, kChannels))
        report.channels = std::stoi(match[1]);
    }
    if (!link) continue;
    ++report.links;
    // The rank that sends writes the line of a connection, unless it says
    // otherwise.
    host_of[link->side == NcclLink::Side::kReceive ? link->to : link->from] =
        link->host;
    channels[{link->from, link->to}].insert(link->channel);
    const auto [at, fresh] = worst.try_emplace({link->from, link->to}, *link);
    if (!fresh && rank_of(*link) > rank_of(at->second)) at->second = *link;
  }
  for (const auto& [ranks, link] : worst) {
    NcclPair pair;
    std::tie(pair.from, pair.to) = ranks;
    pair.kind = link.kind;
    pair.gpu_direct = link.gpu_direct;
    pair.via = link.via;
    pair.channels = static_cast<int>(channels[ranks].size());
    pair.ring = algorithms.ring(pair.from, pair.to);
    pair.tree = algorithms.tree(pair.from, pair.to);
    const auto from = host_of.find(pair.from), to = host_of.find(pair.to);
    // P2P and shared memory exist inside a host only (MNNVL between hosts of
    // one NVLink domain).
    const bool by_memory =
        link.kind == LinkKind::kP2p || link.kind == LinkKind::kSharedMemory;
    const bool known = from != host_of.end() && to != host_of.end();
    pair.same_host = known ? from->second == to->second : by_memory;
    pair.concern = concern_of(pair);
    pair.avoidable = pair.same_host
                         ? !pair.concern.empty() &&
                               (!by_memory || nvlinks.join(pair.from, pair.to))
                         : link.kind == LinkKind::kSocket &&
                               is_at(infiniband, pair.from) &&
                               is_at(infiniband, pair.to);
    report.pairs.push_back(pair);
  }
  return report;
}

}  // namespace chexnet
