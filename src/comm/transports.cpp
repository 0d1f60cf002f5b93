#include "chexnet/comm/transports.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <tuple>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// "NET/IB/3(1)/GDRDMA" -> "NET/IB/GDRDMA": each rank has another adapter.
std::string without_numbers(const std::string& via) {
  static const std::regex kNumber(R"(/\d+(\(\d+\)|\[[0-9a-f]+\])?(?=/|\(|$))");
  return std::regex_replace(via, kNumber, "");
}

std::string use_of(const NcclPair& pair) {
  if (pair.ring && pair.tree) return "ring and tree";
  if (pair.ring) return "ring";
  return pair.tree ? "tree" : "other";
}

std::string avoidable_concern(const NcclPair& pair) {
  return pair.avoidable ? pair.concern : "";
}

}  // namespace

Json transports_json(const NcclReport& report) {
  if (!report.not_recorded.empty())
    return {{"not_recorded", report.not_recorded}};
  if (report.pairs.empty()) return Json::object();
  std::map<std::tuple<std::string, std::string, std::string>, Json> alike;
  for (const auto& pair : report.pairs) {
    const auto via = without_numbers(pair.via), use = use_of(pair);
    Json& entry = alike[{via, use, avoidable_concern(pair)}];
    if (entry.is_null())
      entry = {{"via", via},
               {"gpu_direct", pair.gpu_direct},
               {"used_by", use},
               {"channels", pair.channels},
               {"concern", avoidable_concern(pair)},
               {"pairs", Json::array()}};
    entry["channels"] = std::min(entry["channels"].get<int>(), pair.channels);
    entry["pairs"].push_back({pair.from, pair.to});
  }
  Json connections = Json::array();
  for (const auto& [key, entry] : alike) connections.push_back(entry);
  return {{"channels", report.channels}, {"connections", connections}};
}

std::string transports_text(const NcclReport& report) {
  if (!report.not_recorded.empty())
    return "not recorded, as " + report.not_recorded;
  std::map<std::string, int64_t> pairs;
  for (const auto& pair : report.pairs) ++pairs[without_numbers(pair.via)];
  std::string text;
  for (const auto& [via, count] : pairs)
    text += (text.empty() ? counted(report.channels, "channel") + "; " : ", ") +
            via + ": " + counted(count, "pair");
  return text;
}

std::vector<std::string> transport_warnings(
    const NcclReport& report, const std::vector<PlacementRow>& ranks) {
  const auto name = [&](int rank) {
    const auto place = static_cast<size_t>(rank);
    return place < ranks.size() ? named(ranks[place])
                                : "rank " + std::to_string(rank);
  };
  std::map<std::string, std::vector<const NcclPair*>> slow;
  for (const auto& pair : report.pairs)
    if (pair.avoidable) slow[pair.concern].push_back(&pair);
  std::vector<std::string> warnings;
  for (const auto& [concern, pairs] : slow) {
    const NcclPair& first = *pairs.front();
    const auto colon = concern.find(": ");
    const auto more = std::ssize(pairs) - 1;
    warnings.push_back("[nccl] " + name(first.from) + " -> " + name(first.to) +
                       (more > 0 ? " and " + counted(more, "more pair") : "") +
                       ": " + first.via + ", " + concern.substr(0, colon) +
                       ". Hint: " + concern.substr(colon + 2));
  }
  return warnings;
}

}  // namespace chexnet
