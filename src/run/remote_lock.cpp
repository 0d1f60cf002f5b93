// Nobody's clock is compared with another's: a lock is held while its text
// changes.
#include "chexnet/run/remote_lock.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

constexpr double kRenew_s = 10;
constexpr double kWatch_s = 35;  // three renewals may have failed
constexpr double kLook_s = 5;
constexpr double kReadBack_s = 1;

struct Holder {
  std::string id, who;
  bool is_free = false;
};

Holder holder_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {"", "somebody (no lock of this program)"};
  const auto word = [&](const char* key) {
    return json.contains(key) && json[key].is_string()
               ? printable(json[key].get<std::string>())
               : std::string();
  };
  const auto free = json.find("free");
  return {word("id"), word("holder"),
          free != json.end() && free->is_boolean() && free->get<bool>()};
}

void sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void sleep(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, std::chrono::duration<double>(seconds),
                   [] { return false; });
}

}  // namespace

RemoteLock::RemoteLock(ObjectStore& store, std::string place, std::string id,
                       const std::function<void()>& tick,
                       std::function<void(const std::string& by)> on_loss)
    : store_(store),
      path_(std::move(place) + "/run.lock"),
      id_(std::move(id)),
      on_loss_(std::move(on_loss)) {
  auto before = store_.read_versioned(path_);
  if (is_held(before)) before = watch(before, tick);
  was_ours_ = !before.version.empty() && holder_of(before.text).id == id_;
  const bool taken = take(before.version);
  if (taken) sleep(kReadBack_s);
  const Holder now = holder_of(store_.read_versioned(path_).text);
  if (now.id != id_) refuse(now.who);
  renewal_ = std::jthread([this](const std::stop_token& stop) { renew(stop); });
}

void RemoteLock::refuse(const std::string& who) const {
  throw CheckpointError("[run] " + path_ + ": in use by " + who +
                        ". Hint: wait for that run, stop it, or choose "
                        "another place with --out");
}

bool RemoteLock::is_held(const ObjectStore::Versioned& lock) const {
  if (lock.version.empty()) return false;
  const Holder holder = holder_of(lock.text);
  return holder.id != id_ && !holder.is_free;
}

// Until it is written anew by a process that lives, freed or removed, or until
// that process must be gone. Returns what is to be replaced.
ObjectStore::Versioned RemoteLock::watch(const ObjectStore::Versioned& held,
                                         const std::function<void()>& tick) {
  const std::string who = holder_of(held.text).who;
  log_info("[run] " + path_ + ": " + who +
           " was the last to write there; looking whether it still does");
  for (const double end = now_s() + kWatch_s; now_s() < end;) {
    sleep(kLook_s);
    tick();
    auto now = store_.read_versioned(path_);
    if (!is_held(now)) return now;
    if (now.text != held.text) refuse(holder_of(now.text).who);
  }
  log_warning("[run] " + path_ + ": taken over from " + who +
              ", which no longer writes");
  return held;
}

std::string RemoteLock::text(bool is_free) {
  return nlohmann::json{{"id", id_},
                        {"holder", "process " + std::to_string(::getpid()) +
                                       " on " + host_name()},
                        {"free", is_free},
                        {"renewed", utc_time()},
                        {"beat", ++beat_}}
      .dump();
}

bool RemoteLock::take(const std::string& version) {
  return store_.put(path_, text(false),
                    {.only_new = version.empty(), .replaces = version});
}

std::string RemoteLock::taken_by() {
  const Holder now = holder_of(store_.read_versioned(path_).text);
  return now.id == id_ ? std::string() : now.who;
}

void RemoteLock::renew(const std::stop_token& stop) {
  for (;;) {
    sleep(kRenew_s, stop);
    if (stop.stop_requested()) return;
    try {
      if (const std::string other = taken_by(); !other.empty()) {
        on_loss_(other);
        return;
      }
      store_.put(path_, text(false), {}, stop);
    } catch (const Error&) {
      // The store says in the log that it does not answer.
    }
  }
}

void RemoteLock::release() {
  renewal_ = {};
  store_.put(path_, text(true));
}

void RemoteLock::remove() {
  renewal_ = {};
  store_.remove(path_);
}

}  // namespace chexnet
