#include "metrics_server.hpp"

#include <dirent.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "received_bytes.hpp"

namespace chexnet {
namespace {

struct Address {
  std::string host;
  int port = 0;
};

[[noreturn]] void refuse(const std::string& listen, const std::string& why,
                         const std::string& hint) {
  throw ConfigError("[status] --listen " + listen + ": " + why +
                    ". Hint: " + hint);
}

Address address_of(const std::string& listen) {
  constexpr const char* kForms = "9400, 127.0.0.1:9400 or [::]:9400";
  Address address{.host = "127.0.0.1"};
  std::string port = listen;
  if (const auto colon = listen.rfind(':'); colon != std::string::npos) {
    address.host = listen.substr(0, colon);
    port = listen.substr(colon + 1);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    else if (address.host.find(':') != std::string::npos)
      refuse(listen, "an IPv6 address stands in brackets", kForms);
  }
  constexpr int kLargestPort = 65535;
  const char* end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, address.port);
  if (parsed.ec != std::errc() || parsed.ptr != end || address.host.empty() ||
      address.port < 0 || address.port > kLargestPort)
    refuse(listen, "is no address and port", kForms);
  return address;
}

// Whoever asks wants one page of us, and sends nothing. A connection holds a
// thread until it is answered, so there are many and the waits are short: who
// asks comes through beside clients that do not. `listener` is the socket once
// it is bound.
void limit(httplib::Server& server, socket_t& listener) {
  constexpr size_t kThreads = 64;
  constexpr time_t kForRequest_s = 2, kForAnswer_s = 5;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_timeout(kForRequest_s);  // also before the first byte
  server.set_read_timeout(kForRequest_s);
  server.set_write_timeout(kForAnswer_s);
  server.set_keep_alive_max_count(1);
  server.set_payload_max_length(1);
  // The library would also set SO_REUSEPORT, and two servers share a port.
  server.set_socket_options([&listener](socket_t socket) {
    listener = socket;
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

// A request for a page has some hundred bytes.
constexpr uint64_t kLongestRequest = 64 << 10;

// The TCP connections of this process. The library limits the wait for each
// byte and the length of each line, and not a request: a client that sends a
// byte now and then would keep a thread, and with it the end of the program,
// for ever, and one that sends lines without end would take all memory.
class Connections {
 public:
  Connections() : open_files_(opendir("/proc/self/fd")) {
    if (!open_files_)
      throw DeviceError(std::string("[status] /proc/self/fd: ") +
                        std::strerror(errno) +
                        ". Hint: see that /proc is there, and `ulimit -n`");
  }
  // Cuts those off that were there `age_s` ago already, or that sent more than
  // a request.
  void end_older_than(double age_s) {
    std::map<ino_t, double> seen;
    rewinddir(open_files_.get());
    while (const dirent* entry = readdir(open_files_.get())) {
      const int fd = std::atoi(entry->d_name);
      struct stat info {};
      if (fd <= STDERR_FILENO || !is_tcp(fd) || fstat(fd, &info) != 0) continue;
      const auto known = since_.find(info.st_ino);
      const double since = known == since_.end() ? now_s() : known->second;
      seen[info.st_ino] = since;
      if (now_s() - since >= age_s || received_bytes(fd) > kLongestRequest)
        shutdown(fd, SHUT_RDWR);
    }
    since_ = std::move(seen);
  }

 private:
  static bool is_tcp(int fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
  }
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  // Open from the beginning: when it is needed most there may be no descriptor.
  std::unique_ptr<DIR, Close> open_files_;
  std::map<ino_t, double> since_;  // by the inode of the socket
};

// Prometheus asks for OpenMetrics; the text is also of the older format, which
// others ask for by its own name or not at all.
const char* content_type(const httplib::Request& request) {
  const std::string accepted = request.get_header_value("Accept");
  return accepted.find("application/openmetrics-text") != std::string::npos
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

// The library has no answer for a method without a handler but 404, and builds
// an answer as many times as long as a request names ranges of it.
httplib::Server::HandlerResponse refuse_others(const httplib::Request& request,
                                               httplib::Response& to) {
  constexpr int kMethodNotAllowed = 405, kRangeNotSatisfiable = 416;
  if (request.has_header("Range")) {
    to.status = kRangeNotSatisfiable;
    return httplib::Server::HandlerResponse::Handled;
  }
  if (request.method == "GET" || request.method == "HEAD")
    return httplib::Server::HandlerResponse::Unhandled;
  to.status = kMethodNotAllowed;
  to.set_header("Allow", "GET, HEAD");
  return httplib::Server::HandlerResponse::Handled;
}

// The port it listens to from now on.
int bind(httplib::Server& server, const std::string& listen,
         const Address& address) {
  errno = 0;
  int port = address.port;
  if (port == 0)
    port = server.bind_to_any_port(address.host);
  else if (!server.bind_to_port(address.host, port))
    port = -1;
  if (port >= 0) return port;
  const int error = errno;
  if (error == EADDRINUSE)
    refuse(listen, "the port is in use",
           "choose another one, or 0 for any that is free");
  refuse(listen, error == 0 ? "no such address" : std::strerror(error),
         "an address of this host, and a port from 1024 on");
}

void say_where(const Address& address, int port) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + address.host + "]" : address.host;
  log_info("[status] http://" + host + ":" + std::to_string(port) +
           "/metrics, until Ctrl-C");
  if (address.host != "::1" && address.host != "localhost" &&
      !address.host.starts_with("127."))
    log_warning(
        "[status] whoever reaches this port reads names, folders, hosts and "
        "figures of the runs; nothing is asked of them (docs/monitoring.md)");
}

void listen_until_stopped(httplib::Server& server,
                          std::unique_ptr<ParentSignals> signals) {
  Connections connections;
  std::atomic<bool> ended = false;
  std::jthread listener([&] {
    server.listen_after_bind();
    ended = true;
  });
  // Whatever happens here, the thread ends, and what went wrong is told.
  struct StopAtEnd {
    httplib::Server& server;
    ~StopAtEnd() { server.stop(); }
  } const stop_at_end{server};
  // stop() is lost on one that is not running yet.
  constexpr auto kMoment = std::chrono::milliseconds(10);
  while (!server.is_running() && !ended) std::this_thread::sleep_for(kMoment);
  // As long as a look takes to come, a client may send more than a request.
  constexpr double kLook_s = 0.1, kLongest_s = 15;
  while (!signals->stop_within(kLook_s)) {
    if (ended)
      throw DeviceError("[status] the server ended. Hint: start it again");
    connections.end_older_than(kLongest_s);
  }
  signals.reset();  // a second Ctrl-C kills: a page may wait for a dead disk
  server.stop();
  while (!ended) {
    connections.end_older_than(0);
    std::this_thread::sleep_for(kMoment);
  }
}

}  // namespace

int serve_metrics(const std::string& listen,
                  const std::function<std::string()>& page) {
  const Address address = address_of(listen);
  httplib::Server server;
  socket_t listener = INVALID_SOCKET;
  limit(server, listener);
  server.set_pre_routing_handler(refuse_others);
  std::mutex one_at_a_time;  // page()
  server.Get("/metrics",
             [&](const httplib::Request& request, httplib::Response& to) {
               const std::scoped_lock lock(one_at_a_time);
               to.set_content(page(), content_type(request));
             });
  const int port = bind(server, listen, address);
  // The library lets five connections wait; one more is tried again after 1 s.
  ::listen(listener, SOMAXCONN);
  auto signals = std::make_unique<ParentSignals>();  // before any thread
  say_where(address, port);
  listen_until_stopped(server, std::move(signals));
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace chexnet
