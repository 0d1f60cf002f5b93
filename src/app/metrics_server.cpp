#include "metrics_server.hpp"

#include <httplib.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "chexnet/core/error.hpp"
#include "chexnet/core/exit_codes.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/launch/self_launch.hpp"

namespace chexnet {
namespace {

struct Address {
  std::string host;
  int port = 0;
};

[[noreturn]] void refuse(const std::string& listen, const std::string& why) {
  throw ConfigError("[status] --listen " + listen + ": " + why +
                    ". Hint: 9400, 127.0.0.1:9400 or [::]:9400");
}

Address address_of(const std::string& listen) {
  Address address{.host = "127.0.0.1"};
  std::string port = listen;
  if (const auto colon = listen.rfind(':'); colon != std::string::npos) {
    address.host = listen.substr(0, colon);
    port = listen.substr(colon + 1);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    else if (address.host.find(':') != std::string::npos)
      refuse(listen, "an IPv6 address stands in brackets");
  }
  constexpr int kLargestPort = 65535;
  const char* end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, address.port);
  if (parsed.ec != std::errc() || parsed.ptr != end || address.host.empty() ||
      address.port < 0 || address.port > kLargestPort)
    refuse(listen, "is no address and port");
  return address;
}

// Whoever asks wants one page of us, and sends nothing.
void limit(httplib::Server& server) {
  constexpr size_t kThreads = 2;
  constexpr time_t kPatience_s = 5;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kPatience_s);
  server.set_write_timeout(kPatience_s);
  server.set_keep_alive_max_count(1);  // who keeps a connection holds a thread
  server.set_payload_max_length(1);
  // The library would also set SO_REUSEPORT, and two servers share a port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

}  // namespace

int serve_metrics(const std::string& listen,
                  const std::function<std::string()>& page) {
  const Address address = address_of(listen);
  ParentSignals signals;  // before any thread
  httplib::Server server;
  limit(server);
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& to) {
    to.set_content(
        page(), "application/openmetrics-text; version=1.0.0; charset=utf-8");
  });
  int port = address.port;
  if (port == 0)
    port = server.bind_to_any_port(address.host);
  else if (!server.bind_to_port(address.host, port))
    port = -1;
  if (port < 0) refuse(listen, "cannot be listened to; is the port in use?");
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + address.host + "]" : address.host;
  log_info("[status] http://" + host + ":" + std::to_string(port) +
           "/metrics, until Ctrl-C");
  std::jthread listener([&] { server.listen_after_bind(); });
  while (!server.is_running())  // stop() is lost on one that is not yet
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  constexpr double kLook_s = 1;
  while (!signals.stop_within(kLook_s))
    if (!server.is_running())
      throw DeviceError("[status] the server ended. Hint: start it again");
  server.stop();
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace chexnet
