#include "chexnet/comm/nccl_log.hpp"

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
        std::pair{"IBext_v8", LinkKind::kInfiniBand},
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
  CHECK(forms == 3 * 4 * 3 * 3 * (24 + 7 + 64));
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

namespace {

// Lines of the form of a log in an issue on GitHub, with other names and
// numbers. Where the issue does not say the version, its lines do.
struct Logged {
  const char* version;
  const char* issue;  // below github.com/
  std::vector<std::string> lines;
  const char* via;  // of ranks 0 -> 1, or of the first pair
  bool ring, tree;
};

const std::vector<Logged>& logs() {
  static const std::vector<Logged> logs = {
      {"2.4",
       "NVIDIA/nccl/issues/246",
       {"a:116:560 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/direct pointer",
        "a:116:561 [1] NCCL INFO Trees [0] 0->1->2/-1/-1"},
       "P2P/direct pointer",
       false,
       true},
      {"2.4",
       "NVIDIA/nccl/issues/226",
       {"ip-172-0-0-1:46:51 [0] NCCL INFO Ring 00 : 0 -> 1 [send] via "
        "NET/Socket/0",
        "ip-172-0-0-2:80:84 [0] NCCL INFO Ring 00 : 0 -> 1 [receive] via "
        "NET/Socket/0",
        "ip-172-0-0-2:80:84 [0] NCCL INFO Trees [0] 0->1->-1/-1/-1"},
       "NET/Socket/0",
       false,
       true},
      {"2.5.6",
       "NVIDIA/nccl/issues/278",
       {"a:989:923 [3] NCCL INFO Ring 00 : 0[b01000] -> 1[201000] [send] via "
        "NET/Socket/0"},
       "NET/Socket/0",
       false,
       false},
      {"2.8.3",
       "NVIDIA/nccl/issues/429",
       {"a:194:586 [6] NCCL INFO Channel 02 : 0[b1000] -> 1[b1000] [receive] "
        "via NET/IB/0/GDRDMA",
        "a:194:580 [0] NCCL INFO 6 coll channels, 8 p2p channels, 1 p2p "
        "channels per peer"},
       "NET/IB/0/GDRDMA",
       false,
       false},
      {"2.11.4",
       "NVIDIA/nccl/issues/687",
       {"a:985:027 [1] NCCL INFO Channel 00 : 0[a000] -> 1[7000] via "
        "P2P/IPC/read"},
       "P2P/IPC/read",
       false,
       false},
      {"2.12 to 2.18.1",
       "NVIDIA/nccl-tests/issues/128",
       {"a:140:208 [1] NCCL INFO Channel 00/0 : 0[2c000] -> 1[26000] [send] "
        "via NET/IB/0/GDRDMA",
        "a:140:208 [1] NCCL INFO Trees [0] 2/-1/-1->1->0 [1] 2/-1/-1->1->0"},
       "NET/IB/0/GDRDMA",
       false,
       true},
      {"2.18.3 or later",
       "NVIDIA/nccl/issues/1027",
       {"a:133:991 [3] NCCL INFO Channel 00 : 0[3] -> 1[4] via "
        "SHM/direct/direct",
        "a:133:988 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1"},
       "SHM/direct/direct",
       false,
       true},
      {"2.21.5",
       "NVIDIA/nccl-tests/issues/252",
       {"a:2725:2790 [3] NCCL INFO Channel 03/0 : 0[3] -> 1[3] [receive] via "
        "NET/IBext_v8/3/GDRDMA",
        "a:2725:2790 [3] NCCL INFO Trees [0] -1/-1/-1->0->2 [1] 1/-1/-1->0->2"},
       "NET/IBext_v8/3/GDRDMA",
       false,
       true},
      {"2.22.3",
       "NVIDIA/nccl/issues/1538",
       {"a:5663:5809 [0] NCCL INFO Channel 04/0 : 0[0] -> 1[7] via P2P/CUMEM"},
       "P2P/CUMEM",
       false,
       false},
      {"2.23.4",
       "NVIDIA/nccl-tests/issues/311",
       {"a:737:33 [1] NCCL INFO Channel 00/0 : 0[1] -> 1[0] [send] via "
        "NET/IBext_v8/5(2)/GDRDMA"},
       "NET/IBext_v8/5(2)/GDRDMA",
       false,
       false},
      {"2.20 or later",
       "NVIDIA/nccl/issues/1189",
       {"a:224:735 [0] NCCL INFO Ring 02 : 2 -> 0 -> 1",
        "a:224:735 [0] NCCL INFO Trees [0] 1/2/-1->0->-1 [1] -1/-1/-1->0->1",
        "a:224:735 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "a:224:735 [0] NCCL INFO 8 coll channels, 0 collnet channels, 0 nvls "
        "channels, 8 p2p channels, 2 p2p channels per peer"},
       "P2P/CUMEM",
       true,
       true},
      {"2.28.7 or later",
       "autoscriptlabs/nccl-mesh-plugin/issues/56",
       {"a:22901:22901 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via "
        "NET/IB/4",
        "a:22901:22901 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR "
        "0"},
       "NET/IB/4",
       false,
       false}};
  return logs;
}

// A host of four GPUs in the drawing of 2.30 (src/graph/topo.cc): two with a
// direct NVLink, one behind a switch, one with PCIe alone; then `links`.
std::vector<std::string> drawn(const std::vector<std::string>& links) {
  std::vector<std::string> lines = {
      "=== System : maxBw 48.0 totalBw 370.8 ===",
      "CPU/0-0 (1/2/-1)",
      "+ PCI[48.0] - GPU/0-68000 (0)",
      "              + NVL[24.0] - GPU/0-6b000",
      "+ PCI[48.0] - GPU/0-6b000 (1)",
      "              + NVL[24.0] - GPU/0-68000",
      "+ PCI[48.0] - GPU/0-70000 (2)",
      "              + NVL[370.8] - NVS/0-0",
      "+ PCI[48.0] - GPU/0-75000 (3)",
      "GPU/0-68000 :GPU/0-6b000 (1/24.000000/NVL) CPU/0-0 (2/48.000000/PHB)"};
  lines.insert(lines.end(), links.begin(), links.end());
  for (auto& line : lines) line.insert(0, "a:1:2 [0] NCCL INFO ");
  return lines;
}

}  // namespace

TEST_CASE("logs of NCCL 2.4 to 2.28 are read") {
  for (const auto& log : logs()) {
    INFO(log.version << " " << log.issue);
    const NcclReport report = read_nccl_log(log.lines);
    REQUIRE(report.pairs.size() == 1);
    CHECK(report.unknown == 0);
    CHECK(report.pairs[0].from == 0);
    CHECK(report.pairs[0].to == 1);
    CHECK(report.pairs[0].via == log.via);
    CHECK(report.pairs[0].ring == log.ring);
    CHECK(report.pairs[0].tree == log.tree);
    // A rank sends to the others just the lines that matter.
    for (const auto& line : log.lines)
      CHECK(is_about_links(line) ==
            (line.find("Connected all") == std::string::npos));
  }
  CHECK(read_nccl_log(logs().at(3).lines).channels == 6);
  CHECK(read_nccl_log(logs().at(10).lines).channels == 8);
}

TEST_CASE("a pair counts its channels once") {
  const auto report = read_nccl_log(
      {"a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
       "b:2:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0",
       "a:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0"});
  REQUIRE(report.pairs.size() == 1);
  CHECK(report.pairs[0].channels == 2);
}

TEST_CASE("through host memory is avoidable where NVLink joins two GPUs") {
  const auto avoidable = [](const std::string& ranks, const std::string& via) {
    const auto report =
        read_nccl_log(drawn({"Channel 00 : " + ranks + " via " + via}));
    REQUIRE(report.pairs.size() == 1);
    return report.pairs[0].avoidable;
  };
  const std::string shared = "SHM/direct/direct";
  CHECK(avoidable("0[0] -> 1[1]", shared));
  CHECK(avoidable("1[1] -> 0[0]", shared));
  CHECK_FALSE(avoidable("0[0] -> 1[1]", "P2P/CUMEM"));
  // Without NVLink it is what such a host has: no advice would help.
  CHECK_FALSE(avoidable("2[2] -> 3[3]", shared));
  CHECK_FALSE(avoidable("0[0] -> 2[2]", shared));

  const std::vector<std::string> switched = {
      "a:1:2 [0] NCCL INFO + PCI[24.0] - GPU/4000 (0)",
      "a:1:2 [0] NCCL INFO        + NVL[360.0] - NVS/0",
      "a:1:2 [0] NCCL INFO + PCI[24.0] - GPU/5000 (1)",
      "a:1:2 [0] NCCL INFO        + NVL[360.0] - NVS/0",
      "a:1:2 [0] NCCL INFO Channel 07 : 0[6] -> 1[7] via SHM/direct/direct"};
  CHECK(read_nccl_log(switched).pairs.at(0).avoidable);
}

TEST_CASE("sockets are avoidable where both hosts have InfiniBand") {
  const std::vector<std::string> lines = {
      "a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
      "b:2:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via "
      "NET/Socket/0"};
  CHECK(read_nccl_log(lines, {true, true}).pairs.at(0).avoidable);
  CHECK_FALSE(read_nccl_log(lines, {true, false}).pairs.at(0).avoidable);
  CHECK_FALSE(read_nccl_log(lines).pairs.at(0).avoidable);
  // Inside a host the network is never the best way.
  CHECK(read_nccl_log({lines[0],
                       "a:3:3 [1] NCCL INFO Channel 00/0 : 0[0] -> "
                       "1[0] [receive] via NET/Socket/0"})
            .pairs.at(0)
            .avoidable);
}
