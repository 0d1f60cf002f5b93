#include "chexnet/comm/transports.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

NcclPair pair_of(int from, int to, const std::string& via, bool tree = false) {
  NcclPair pair;
  pair.from = from;
  pair.to = to;
  pair.via = via;
  pair.channels = 8;
  pair.ring = true;
  pair.tree = tree;
  return pair;
}

// A ring over 16 hosts of 8 GPUs, each host with other adapters.
NcclReport large() {
  NcclReport report;
  report.channels = 8;
  for (int r = 0; r < 128; ++r) {
    const bool leaves = r % 8 == 7;
    report.pairs.push_back(
        pair_of(r, (r + 1) % 128,
                leaves ? "NET/IB/" + std::to_string(r % 4) + "(3)/GDRDMA/Shared"
                       : "P2P/CUMEM/read"));
    report.pairs.back().gpu_direct = leaves;
  }
  report.pairs[7].channels = 4;
  return report;
}

}  // namespace

TEST_CASE("128 ranks take two entries") {
  const Json json = transports_json(large());
  CHECK(json["channels"] == 8);
  const Json& entries = json["connections"];
  REQUIRE(entries.size() == 2);
  CHECK(entries[0]["via"] == "NET/IB/GDRDMA/Shared");
  CHECK(entries[0]["gpu_direct"] == true);
  CHECK(entries[0]["pairs"].size() == 16);
  CHECK(entries[0]["pairs"][1] == Json::array({15, 16}));
  CHECK(entries[0]["channels"] == 4);  // the fewest of a pair
  CHECK(entries[1]["via"] == "P2P/CUMEM/read");
  CHECK(entries[1]["pairs"].size() == 112);
  CHECK(entries[1]["used_by"] == "ring");
  CHECK(entries[1]["concern"] == "");
  CHECK(transports_text(large()) ==
        "8 channels; NET/IB/GDRDMA/Shared: 16 pairs, P2P/CUMEM/read: 112 "
        "pairs");
  CHECK(transport_warnings(large(), {}).empty());
}

TEST_CASE("a pair that could be faster has an entry and a warning") {
  NcclReport report = large();
  for (const int from : {0, 1}) {
    NcclPair& pair = report.pairs[static_cast<size_t>(from)];
    pair.via = "SHM/direct/direct";
    pair.concern = "through host memory: NCCL_P2P_DISABLE set?";
    pair.avoidable = true;
  }
  report.pairs[2].concern = "slow, but nothing else is there: buy more";
  const Json entries = transports_json(report)["connections"];
  REQUIRE(entries.size() == 3);
  CHECK(entries[2]["concern"] == report.pairs[0].concern);
  CHECK(entries[1]["concern"] == "");

  PlacementRow row;
  row.host = "node1";
  row.gpu = "H100";
  std::vector<PlacementRow> rows(2, row);
  rows[1].rank = 1;
  const auto warnings = transport_warnings(report, rows);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "[nccl] rank 0 on node1 (H100) -> rank 1 on node1 (H100) and 1 more "
        "pair: SHM/direct/direct, through host memory. Hint: NCCL_P2P_DISABLE "
        "set?");
}

TEST_CASE("a start that was not recorded says why") {
  NcclReport report;
  CHECK(transports_json(report).empty());
  CHECK(transports_text(report).empty());
  report.not_recorded = "NCCL_DEBUG is set";
  CHECK(transports_json(report) == Json{{"not_recorded", "NCCL_DEBUG is set"}});
  CHECK(transports_text(report) == "not recorded, as NCCL_DEBUG is set");
}
