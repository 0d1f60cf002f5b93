// Signed exchanges with an S3 server, tried again while what fails may pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/data/storage/s3_store.hpp"
#include "outage_log.hpp"
#include "s3_world.hpp"

namespace chexnet {

struct S3Address {
  std::string bucket, key;
};
// Of s3://bucket/key. ConfigError where there is no bucket.
S3Address address_of(const std::string& path);

struct S3Call {
  std::string method = "GET";
  std::string path;  // s3://bucket/key
  std::vector<std::pair<std::string, std::string>> query = {};
  std::map<std::string, std::string> headers = {};  // lower-case names
  std::span<const std::byte> body = {};
  uint64_t max_bytes = 64 << 10;  // of the answer
  double total_s = 0;             // as HttpRequest's
  std::stop_token stop = {};
  // What is wrong with an answer of status 2xx, so that the request is
  // repeated; empty: nothing.
  std::function<std::string(const HttpResponse&, std::span<const std::byte>)>
      damage = [](const auto&, const auto&) { return std::string(); };
};

// Any number of threads.
class S3Client {
 public:
  S3Client(S3World world, const S3Options& options, const Environment& env);

  // Any answer that will not pass, whatever its status. OutageError after the
  // last attempt; DataError when more comes than requested.
  HttpResponse send(const S3Call& call, std::vector<std::byte>& body);
  // Throws AbsentError with the server's words.
  [[noreturn]] void refuse(const std::string& path, const HttpResponse& r,
                           std::span<const std::byte> body) const;

 private:
  int attempts_of(const S3Call& call) const;
  HttpRequest request(const S3Call& call);
  std::string set_address(const S3Address& where, SignedRequest& request) const;
  std::optional<Credentials> current_credentials();

  const S3World world_;
  S3Options options_;
  std::string region_;
  std::optional<Credentials> credentials_;
  std::string searched_;  // where they were looked for
  OutageLog outages_;
  std::mutex mutex_;  // guards the two below
  std::optional<Credentials> instance_;
  double instance_until_s_ = 0;
};

}  // namespace chexnet
