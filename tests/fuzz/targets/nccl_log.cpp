// NCCL's log: every line is a link, unknown, or neither.
#include "chexnet/comm/nccl_log.hpp"

#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  std::vector<std::string> lines;
  for (Reader parts(bytes); !parts.rest().empty();)
    lines.push_back(parts.until('\n'));
  const NcclReport report = read_nccl_log(lines);
  require(report.links + report.unknown <= lines.size(), "a line counts once");
  require(report.pairs.size() <= report.links, "a pair has a link");
  for (const auto& pair : report.pairs)
    require(pair.from >= 0 && pair.to >= 0 && !pair.via.empty(),
            "a pair has two ranks and a way");
}

std::vector<std::string> seeds() {
  const std::string head = "node1:100:200 [0] NCCL INFO ";
  return {head + "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read\n" + head +
              "Channel 01/0 : 1[b0] -> 0[a0] [receive] via NET/IB/0/GDRDMA\n",
          "[1,3]<stdout>:" + head + "Ring 00 : 2 -> 3 via direct shared memory",
          head + "Channel 02 : 0 -> 9 [send] via NET/Socket/0(1)/Shared\n" +
              head + "Channel 00 : 0 -> 1 via CARRIER/pigeon",
          head + "Channel 0 : 0 -> 1 via P2P/indirect/3[ab]/CE",
          // One pair over several ways, of which the slowest counts.
          head + "Channel 00 : 0 -> 1 via SHM/direct/direct\n" + head +
              "Channel 01 : 0 -> 1 via NET/IB/0\n" + head +
              "Channel 02 : 0 -> 1 via NET/IB/0/GDRDMA\n" + head +
              "Channel 03 : 0 -> 1 via NET/OFI/0\n" + head +
              "Channel 04 : 0 -> 1 via P2P/IPC\n" + head +
              "Channel 05 : 0 -> 1 via NET/Socket/0",
          head + "+ PCI[24.0] - GPU/0-1a000 (0)\n" + head +
              "+ NVL[48.0] - GPU/0-2a000\n" + head +
              "+ NVL[240.0] - NVS/0-0\n" + head +
              "+ PCI[24.0] - GPU/0-2a000 (1)\n" + head +
              "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
          head + "Ring 00 : 1 -> 0 -> 1\n" + head +
              "Trees [0] 1/-1/-1->0->-1 [1] 1->0->-1/-1/-1\n" + head +
              "2 coll channels, 2 p2p channels, 2 p2p channels per peer\n" +
              head + "Channel 00 : 0[0] -> 1[1] via P2P/IPC",
          head + "Channel 00 : 0 -> 1 via " + std::string(2048, 'a')};
}

const Registered kTarget{{"nccl_log", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
