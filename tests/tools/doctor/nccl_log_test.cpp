#include "chexnet/tools/doctor/nccl_log.hpp"

#include "support/catch.hpp"

using namespace chexnet;

namespace {
std::optional<NcclLink> parse(const std::string& line) {
  bool unknown = false;
  return parse_nccl_line(line, unknown);
}
}  // namespace

TEST_CASE("every form in which NCCL 2.4 to 2.30 names a connection is read") {
  const std::vector<std::string> heads = {"Ring 00", "Channel 00",
                                          "Channel 03/0", "Channel 11/32"};
  const std::vector<std::pair<std::string, std::string>> ends = {
      {"0", "1"}, {"0[0]", "1[1]"}, {"0[1a000]", "1[3d000]"}};
  const std::vector<std::string> sides = {"", " [send]", " [receive]"};
  struct Via {
    std::string text;
    LinkKind kind;
    bool gpu_direct = false;
  };
  std::vector<Via> vias;
  for (const char* kind : {"IPC", "CUMEM", "MNNVL", "direct pointer",
                           "common device", "indirect/3[1a000]"})
    for (const char* read : {"", "/read"})
      for (const char* ce : {"", "/CE"})
        vias.push_back(
            {std::string("P2P/") + kind + read + ce, LinkKind::kP2p});
  for (const char* text :
       {"SHM/direct", "SHM/CE", "SHM/direct/direct", "SHM/CE/direct",
        "SHM/direct/CE", "SHM/CE/CE", "direct shared memory"})
    vias.push_back({text, LinkKind::kSharedMemory});
  for (const auto& [net, kind] :
       {std::pair{"IB", LinkKind::kInfiniBand},
        std::pair{"Socket", LinkKind::kSocket},
        std::pair{"AWS Libfabric", LinkKind::kOtherNet}})
    for (const char* device : {"/0", "/2(1)"})
      for (const char* direct : {"", "/GDRDMA"})
        for (const char* pci : {"", "(PCI)"})
          for (const char* shared : {"", "/Shared"})
            vias.push_back(
                {std::string("NET/") + net + device + direct + pci + shared,
                 kind, *direct != '\0'});
  const std::vector<std::string> prefixes = {
      "node1:4711:4712 [0] NCCL INFO ",
      "[1,0]<stdout>:node1:4711:4712 [0] NCCL INFO ",
      "node1:4711:4712 NCCL INFO "};
  int forms = 0;
  for (const auto& prefix : prefixes)
    for (const auto& head : heads)
      for (const auto& [from, to] : ends)
        for (const auto& side : sides)
          for (const auto& via : vias) {
            const std::string line = prefix + head + " : " + from + " -> " +
                                     to + side + " via " + via.text;
            INFO(line);
            const auto link = parse(line);
            REQUIRE(link);
            CHECK(link->from == 0);
            CHECK(link->to == 1);
            CHECK(link->kind == via.kind);
            CHECK(link->gpu_direct == via.gpu_direct);
            CHECK(link->via == via.text);
            CHECK(link->host == "node1");
            ++forms;
          }
  CHECK(forms == 3 * 4 * 3 * 3 * (24 + 7 + 48));
}

TEST_CASE("other lines are skipped, and unknown connections counted") {
  bool unknown = false;
  for (const char* line :
       {"node1:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
        "node1:1:2 [0] NCCL INFO Connected all rings",
        "Channel 00 : 0 -> 1 via P2P/IPC but not NCCL", ""}) {
    CHECK_FALSE(parse_nccl_line(line, unknown));
    CHECK_FALSE(unknown);
  }
  CHECK_FALSE(parse_nccl_line(
      "n:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via TELEPATHY/0",
      unknown));
  CHECK(unknown);
}

TEST_CASE("a log is checked pair by pair") {
  const auto report = read_nccl_log(
      {"a:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC",
       "a:2:2 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via SHM/direct/direct",
       "a:2:2 [1] NCCL INFO Channel 01 : 1[1] -> 0[0] via P2P/IPC",
       "a:2:2 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via "
       "NET/IB/0/GDRDMA",
       "b:3:3 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [receive] via "
       "NET/IB/0/GDRDMA",
       "b:3:3 [0] NCCL INFO Channel 00/0 : 2[0] -> 0[0] [send] via "
       "NET/Socket/0",
       "b:3:3 [0] NCCL INFO Channel 00/0 : 2[0] -> 3[1] via MAGIC"});
  REQUIRE(report.pairs.size() == 4);
  CHECK(report.links == 6);
  CHECK(report.unknown == 1);
  CHECK(report.pairs[0].concern.empty());
  // The worst of two channels.
  CHECK(report.pairs[1].concern.find("through host memory") == 0);
  CHECK_FALSE(report.pairs[2].same_host);
  CHECK(report.pairs[2].concern.empty());
  CHECK(report.pairs[3].concern.find("over TCP sockets") == 0);
}

TEST_CASE("lines that no NCCL writes are counted as unknown") {
  const std::string head = "node1:1:2 [0] NCCL INFO ";
  const std::string number(400, '9');
  for (const auto& line :
       {head + "Channel " + number + " : 0 -> 1 via P2P/IPC",
        head + "Channel 0 : 0 -> " + number + " via P2P/IPC",
        head + "Channel 0 : 0 -> 1 via P2P/IPC" + std::string(1 << 20, ' '),
        head + "Channel 0 : 0 -> 1 via NET/" + std::string(1 << 20, 'x')}) {
    bool unknown = false;
    CHECK_FALSE(parse_nccl_line(line, unknown));
    CHECK(unknown);
  }
}
