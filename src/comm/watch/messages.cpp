#include "messages.hpp"

#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "chexnet/core/whole_number.hpp"

namespace chexnet {
namespace {

using nlohmann::json;

double in_ms(double seconds) { return std::round(1e3 * seconds) / 1e3; }

json json_of(const RankView& view) {
  json said = {{"rank", view.rank},
               {"pid", view.pid},
               {"phase", static_cast<int>(view.phase)},
               {"gone", view.gone},
               {"heartbeat_s", in_ms(view.heartbeat_age_s)},
               {"phase_s", in_ms(view.phase_age_s)},
               {"sequence", view.sequence},
               {"step", view.step}};
  if (view.stopped) said["stopped"] = true;
  return said;
}

Phase phase_of(int number) {
  if (number < 0 || number >= kPhases) throw std::out_of_range("phase");
  return static_cast<Phase>(number);
}

// `known`: the rank as it was. Throws for what is missing or of another type.
RankView view_of(const json& said, const RankView& known) {
  RankView view = known;
  view.pid = whole_number<int>(said.at("pid"));
  view.phase = phase_of(whole_number<int>(said.at("phase")));
  view.ended = view.phase == Phase::kEnded;
  view.gone = said.at("gone");
  view.stopped = said.value("stopped", false);
  view.heartbeat_age_s = said.at("heartbeat_s");
  view.phase_age_s = said.at("phase_s");
  view.sequence = whole_number<uint64_t>(said.at("sequence"));
  view.step = whole_number<int64_t>(said.at("step"));
  // Its last report: what comes later is older, from an abandoned connection.
  return known.ended ? known : view;
}

}  // namespace

std::string report_line(const std::vector<RankView>& ranks) {
  json message = {{"ranks", json::array()}};
  for (const auto& view : ranks) message["ranks"].push_back(json_of(view));
  return message.dump();
}

std::optional<std::vector<int>> read_report(const std::string& line,
                                            std::vector<RankView>& views) {
  // The whole report is parsed before any part is used.
  std::vector<RankView> read;
  try {
    const json message = json::parse(line);
    for (const json& said : message.at("ranks"))
      read.push_back(
          view_of(said, views.at(whole_number<size_t>(said.at("rank")))));
  } catch (const std::exception&) {
    return std::nullopt;
  }

  std::vector<int> ranks;
  for (const auto& view : read) {
    views[static_cast<size_t>(view.rank)] = view;
    ranks.push_back(view.rank);
  }
  return ranks;
}

std::string answer_line(const std::string& token, int end_code) {
  assert(!token.empty());
  return json({{"token", token}, {"end", end_code}}).dump();
}

std::optional<int> read_answer(const std::string& line,
                               const std::string& token) {
  try {
    const json answer = json::parse(line);
    if (answer.at("token") != token) return std::nullopt;
    return whole_number<int>(answer.at("end"));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace chexnet
