// `status --listen`: a page for Prometheus over HTTP.
#pragma once

#include <functional>
#include <string>

namespace chexnet {

// Answers GET /metrics with `page`, called by one thread at a time, until TERM,
// INT or USR1; returns exit code 0. A client has 15 s. `listen` is
// ADDRESS:PORT, [IPv6]:PORT or a port of 127.0.0.1. ConfigError for other text
// and for a port that cannot be had.
int serve_metrics(const std::string& listen,
                  const std::function<std::string()>& page);

}  // namespace chexnet
