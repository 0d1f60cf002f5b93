// What an S3 store needs from outside: exchanges, pauses and the time. A test
// replaces it by a script, so that refusals, stalls and cut answers need no
// server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/data/storage/s3_store.hpp"
#include "http.hpp"
#include "outage_log.hpp"

namespace chexnet {

// As http_exchange(). Any number of threads.
using HttpTransport =
    std::function<HttpResponse(const HttpRequest&, std::vector<std::byte>&)>;

struct S3World {
  HttpTransport exchange = http_exchange;
  std::function<void(double seconds, const std::stop_token&)> pause =
      chexnet::pause;
  std::function<double()> now_s = chexnet::now_s;
  // Larger files go up in parts of this size. S3 takes 5 MiB and more.
  uint64_t part_bytes = uint64_t{16} << 20;
};

// s3_store() in that world.
std::unique_ptr<ObjectStore> s3_store_in(S3World world,
                                         const S3Options& options,
                                         const Environment& env);

}  // namespace chexnet
