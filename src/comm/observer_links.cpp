#include "observer_links.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chexnet/core/resources.hpp"

namespace chexnet {
namespace {

using nlohmann::json;
constexpr double kConnectEvery = 1;  // seconds

}  // namespace

std::string report_line(const std::string& token, const std::vector<RankView>& ranks) {
  json message = {{"token", token}, {"ranks", json::array()}};
  for (const auto& v : ranks)
    message["ranks"].push_back({v.rank, v.pid, static_cast<int>(v.operation), v.gone, v.beat_age_s,
                                v.operation_age_s, v.sequence, v.step});
  return message.dump();
}

std::optional<std::vector<int>> read_report(const std::string& line, const std::string& token,
                                            std::vector<RankView>& views) {
  try {
    const auto message = json::parse(line);
    if (message.at("token") != token) return std::nullopt;
    std::vector<int> ranks;
    for (const auto& r : message.at("ranks")) {
      RankView& view = views.at(r.at(0).get<std::size_t>());
      view.pid = r.at(1);
      view.operation = static_cast<Operation>(r.at(2).get<int>());
      view.ended = view.operation == Operation::kEnded;
      view.gone = r.at(3);
      view.beat_age_s = r.at(4);
      view.operation_age_s = r.at(5);
      view.sequence = r.at(6);
      view.step = r.at(7);
      ranks.push_back(view.rank);
    }
    return ranks;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string answer_line(int verdict) { return json({{"verdict", verdict}}).dump(); }

void ObserverLinks::add(std::vector<std::string> addresses, int port) {
  Link& link = links_.emplace_back();
  link.addresses = std::move(addresses);
  link.port = port;
  link.answered_s = now_s();
}

void ObserverLinks::forgive() {
  for (auto& link : links_) link.answered_s = now_s();
}

int ObserverLinks::exchange(const std::string& report) {
  int verdict = 0;
  for (auto& link : links_) {
    const double now = now_s();
    if (!link.socket && now - link.tried_s > kConnectEvery) {
      link.socket = LineSocket::connect(link.addresses, link.port, link.attempts++);
      link.tried_s = now;
    }
    if (!link.socket) continue;
    const auto answers = link.socket->receive();
    if (!answers || !link.socket->send(report)) {
      link.socket.reset();
      continue;
    }
    for (const auto& answer : *answers) {
      const auto reply = json::parse(answer, nullptr, false);
      if (reply.is_discarded()) continue;
      link.answered_s = now;
      if (const int code = reply.value("verdict", 0); code != 0) verdict = code;
    }
    // Another way to the observer, when this one never answers.
    if (now - link.answered_s > 2 * kConnectEvery && now - link.tried_s > 2 * kConnectEvery)
      link.socket.reset();
  }
  return verdict;
}

bool ObserverLinks::heard(double silence_s) const {
  return std::ranges::any_of(
      links_, [&](const Link& link) { return now_s() - link.answered_s < silence_s; });
}

}  // namespace chexnet
