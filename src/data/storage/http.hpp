// One HTTP exchange over libcurl, on the calling thread's connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace chexnet {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::map<std::string, std::string> headers;
  std::span<const std::byte> body = {};  // sent where the method is PUT or POST
  double timeout_s = 20;      // without a byte; also for the connection
  double total_s = 0;         // of the whole exchange; 0: as long as it takes
  uint64_t max_bytes = 0;     // of the answer's body
  std::stop_token stop;       // ends the exchange within a second
  bool past_proxies = false;  // whatever http_proxy says
};

struct HttpResponse {
  int status = 0;  // 0: no whole answer came; `failure` says why
  std::string failure = {};
  std::string content_range = {};
  // Ended at max_bytes; an error page (status >= 300) is cut there instead.
  bool too_long = false;
  std::string etag = {};
  bool is_encrypted = false;  // so that its ETag is no MD5
};

// The body goes to `body`, whose capacity is kept.
HttpResponse http_exchange(const HttpRequest& request,
                           std::vector<std::byte>& body);

}  // namespace chexnet
