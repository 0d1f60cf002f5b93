#include "observer_links.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/clock.hpp"

namespace chexnet {
namespace {

using nlohmann::json;
constexpr double kConnectEvery = 1;  // seconds

Phase phase_of(int number) {
  if (number < 0 || number >= kPhases) throw std::out_of_range("phase");
  return static_cast<Phase>(number);
}

}  // namespace

std::string report_line(const std::vector<RankView>& ranks) {
  json message = {{"ranks", json::array()}};
  for (const auto& v : ranks)
    message["ranks"].push_back({v.rank, v.pid, static_cast<int>(v.phase), v.gone, v.heartbeat_age_s,
                                v.phase_age_s, v.sequence, v.step});
  return message.dump();
}

std::optional<std::vector<int>> read_report(const std::string& line, std::vector<RankView>& views) {
  try {
    const auto message = json::parse(line);
    std::vector<RankView> read;
    for (const auto& r : message.at("ranks")) {
      RankView view = views.at(r.at(0).get<std::size_t>());
      view.pid = r.at(1);
      view.phase = phase_of(r.at(2).get<int>());
      view.ended = view.phase == Phase::kEnded;
      view.gone = r.at(3);
      view.heartbeat_age_s = r.at(4);
      view.phase_age_s = r.at(5);
      view.sequence = r.at(6);
      view.step = r.at(7);
      read.push_back(view);
    }
    std::vector<int> ranks;
    for (const auto& view : read) {
      views[static_cast<std::size_t>(view.rank)] = view;
      ranks.push_back(view.rank);
    }
    return ranks;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string answer_line(const std::string& token, int end_code) {
  return json({{"token", token}, {"end", end_code}}).dump();
}

std::optional<int> read_answer(const std::string& line, const std::string& token) {
  try {
    const auto answer = json::parse(line);
    if (answer.at("token") != token) return std::nullopt;
    return answer.at("end").get<int>();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void ObserverLinks::add(std::vector<Endpoint> endpoints) {
  Link& link = links_.emplace_back();
  link.endpoints = std::move(endpoints);
  link.answered_s = now_s();
}

void ObserverLinks::restart_timeouts() {
  for (auto& link : links_) link.answered_s = now_s();
}

void ObserverLinks::connect(Link& link) {
  if (link.endpoints.empty() || now_s() - link.tried_s <= kConnectEvery) return;
  const Endpoint& to = link.endpoints[link.attempts++ % link.endpoints.size()];
  link.socket = LineSocket::connect(to, tokens_.report);
  link.tried_s = now_s();
}

int ObserverLinks::read_answers(Link& link, const std::vector<std::string>& lines) {
  int end_code = 0;
  for (const auto& line : lines) {
    const auto code = read_answer(line, tokens_.answer);
    if (!code) continue;
    link.answered_s = now_s();
    if (*code != 0) end_code = *code;
  }
  return end_code;
}

int ObserverLinks::exchange(const std::string& report) {
  int end_code = 0;
  for (auto& link : links_) {
    if (!link.socket) connect(link);
    if (!link.socket) continue;
    const auto answers = link.socket->receive();
    if (answers)
      if (const int code = read_answers(link, *answers); code != 0) end_code = code;
    // Another way to the observer, when this one never answers.
    const double now = now_s();
    const bool silent =
        now - link.answered_s > 2 * kConnectEvery && now - link.tried_s > 2 * kConnectEvery;
    if (!answers || !link.socket->send(report) || silent) link.socket.reset();
  }
  return end_code;
}

bool ObserverLinks::heard(double silence_s) const {
  return std::ranges::any_of(
      links_, [&](const Link& link) { return now_s() - link.answered_s < silence_s; });
}

}  // namespace chexnet
