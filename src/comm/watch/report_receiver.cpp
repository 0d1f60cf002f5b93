// Connections move one way only, and each step has a bound:
//
//   accept --> strangers_ --the token first--> known_ --reports--> use()
//              64 in all, 8 of an address,     8 of an address,
//              2 s each                        a look of 10 ms takes them in
//                                              turn
#include "report_receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <span>
#include <utility>

#include "chexnet/core/clock.hpp"

namespace chexnet {
namespace {

// The heartbeat that follows comes every 0.05 s.
constexpr double kLook_s = 0.01;
constexpr int kAcceptedAtOnce = 64;
constexpr double kPauseWithoutDescriptors_s = 1;

template <class Connections>
void drop_oldest(Connections& connections, const std::string& peer,
                 size_t most) {
  const auto is_peers = [&](const auto& c) { return c.socket.peer() == peer; };
  if (static_cast<size_t>(std::ranges::count_if(connections, is_peers)) > most)
    connections.erase(std::ranges::find_if(connections, is_peers));
}

// False when the connection is to end.
bool answer(LineSocket& socket, std::span<const std::string> reports,
            const ReportInbox::Use& use) {
  return std::ranges::all_of(reports, [&](const std::string& report) {
    const std::string reply = use(report);
    return !reply.empty() && socket.send(reply);
  });
}

}  // namespace

ReportReceiver::ReportReceiver(const std::vector<std::string>& addresses,
                               std::string token)
    : token_(std::move(token)) {
  for (const auto& address : addresses) {
    LineListener listener(address);
    if (listener.endpoint().port != 0)
      listeners_.push_back(std::move(listener));
  }
}

std::vector<Endpoint> ReportReceiver::endpoints() const {
  std::vector<Endpoint> found;
  for (const auto& listener : listeners_) found.push_back(listener.endpoint());
  return found;
}

std::vector<int> ReportReceiver::descriptors(double now_s) const {
  std::vector<int> found;
  if (now_s >= accepts_from_s_)
    for (const auto& listener : listeners_) found.push_back(listener.fd());
  for (const auto& stranger : strangers_) found.push_back(stranger.socket.fd());
  for (const auto& connection : known_) found.push_back(connection.socket.fd());
  return found;
}

void ReportReceiver::take(double now_s, const Use& use) {
  accept(now_s);
  hear_strangers(now_s, use);
  hear_known(use);
}

void ReportReceiver::tell_all(const std::string& line) {
  for (auto& connection : known_) connection.socket.send(line);
}

void ReportReceiver::accept(double now_s) {
  if (now_s < accepts_from_s_) return;
  for (auto& listener : listeners_)
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      auto socket = listener.accept();
      if (!socket) {
        // A listener whose connections cannot be taken would wake poll()
        // without end.
        if (errno == EMFILE || errno == ENFILE)
          accepts_from_s_ = now_s + kPauseWithoutDescriptors_s;
        break;
      }
      const std::string peer = socket->peer();
      strangers_.push_back({std::move(*socket), now_s});
      // The newest stay: a rank, which knows the token, sends it at once.
      drop_oldest(strangers_, peer, kMostOfAddress);
      if (strangers_.size() > kMostStrangers)
        strangers_.erase(strangers_.begin());
    }
}

void ReportReceiver::hear_strangers(double now_s, const Use& use) {
  std::vector<Connection> waiting;
  for (auto& stranger : strangers_) {
    const auto lines = stranger.socket.receive();
    if (!lines) continue;
    if (lines->empty()) {
      if (now_s - stranger.since_s < kGreeting_s)
        waiting.push_back(std::move(stranger));
      continue;
    }
    if (lines->front() != token_) continue;
    if (!answer(stranger.socket, std::span(*lines).subspan(1), use)) continue;
    const std::string peer = stranger.socket.peer();
    known_.push_back(std::move(stranger));
    drop_oldest(known_, peer, kMostOfAddress);
  }
  strangers_ = std::move(waiting);
}

void ReportReceiver::hear_known(const Use& use) {
  const double end = chexnet::now_s() + kLook_s;
  const size_t count = known_.size();
  std::vector<size_t> lost;
  for (size_t i = 0; i < count && chexnet::now_s() < end; ++i) {
    // In turn, so that a call that is cut short goes on where it ended.
    const size_t at = next_++ % count;
    const auto lines = known_[at].socket.receive();
    if (!lines || !answer(known_[at].socket, *lines, use)) lost.push_back(at);
  }
  std::ranges::sort(lost, std::greater<>());
  for (const size_t at : lost)
    known_.erase(known_.begin() + static_cast<ptrdiff_t>(at));
}

}  // namespace chexnet
