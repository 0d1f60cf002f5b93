#include "chexnet/tools/doctor/nccl_log.hpp"

#include <algorithm>
#include <map>
#include <regex>

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
  if (plugin == "IB") return LinkKind::kInfiniBand;
  if (plugin == "Socket") return LinkKind::kSocket;
  return LinkKind::kOtherNet;
}

std::string concern_of(const NcclPair& pair) {
  if (pair.same_host) {
    switch (pair.kind) {
      case LinkKind::kP2p:
        return "";
      case LinkKind::kSharedMemory:
        return "through host memory instead of NVLink or PCIe: "
               "NCCL_P2P_DISABLE set, IOMMU or ACS "
               "on, or the GPUs are hidden from each other by cgroups";
      default:
        return "over the network inside one host: NCCL_P2P_DISABLE and "
               "NCCL_SHM_DISABLE set, or "
               "/dev/shm too small";
    }
  }
  if (pair.kind == LinkKind::kSocket)
    return "over TCP sockets: is InfiniBand there (ibstat), NCCL_IB_DISABLE "
           "set, or the verbs "
           "library missing in the container?";
  if (pair.kind == LinkKind::kInfiniBand && !pair.gpu_direct)
    return "InfiniBand without GPUDirect RDMA: nvidia-peermem loaded?";
  return "";
}

}  // namespace

std::optional<NcclLink> parse_nccl_line(const std::string& line,
                                        bool& unknown) {
  unknown = false;
  if (line.find("NCCL INFO") == std::string::npos ||
      line.find(" via ") == std::string::npos)
    return std::nullopt;
  // The patterns take a step of the stack for each character.
  constexpr size_t kLongestLine = 2048;
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
  static const std::regex kHost(
      R"(([A-Za-z0-9_.-]+):\d+:\d+ (?:\[\d+\] )?NCCL INFO)");
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
  if (std::regex_search(line, match, kHost)) link.host = match[1];
  return link;
}

NcclReport read_nccl_log(const std::vector<std::string>& lines) {
  NcclReport report;
  std::vector<NcclLink> links;
  std::map<int, std::string> host_of;
  for (const auto& line : lines) {
    bool unknown = false;
    if (auto link = parse_nccl_line(line, unknown)) {
      // The line of a connection is written by the rank that sends, unless it
      // says otherwise.
      host_of[link->side == NcclLink::Side::kReceive ? link->to : link->from] =
          link->host;
      links.push_back(std::move(*link));
    }
    report.unknown += unknown ? 1 : 0;
  }
  report.links = links.size();
  std::map<std::pair<int, int>, NcclLink> worst;
  for (const auto& link : links) {
    const auto [at, fresh] = worst.try_emplace({link.from, link.to}, link);
    if (!fresh && rank_of(link) > rank_of(at->second)) at->second = link;
  }
  for (const auto& [ranks, link] : worst) {
    NcclPair pair{ranks.first,     ranks.second, false, link.kind,
                  link.gpu_direct, link.via,     ""};
    const auto from = host_of.find(ranks.first),
               to = host_of.find(ranks.second);
    // P2P and shared memory exist inside a host only (MNNVL between hosts of
    // one NVLink domain).
    pair.same_host = from != host_of.end() && to != host_of.end()
                         ? from->second == to->second
                         : link.kind == LinkKind::kP2p ||
                               link.kind == LinkKind::kSharedMemory;
    pair.concern = concern_of(pair);
    report.pairs.push_back(pair);
  }
  return report;
}

}  // namespace chexnet
