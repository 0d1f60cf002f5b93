// An exchange ends in one of three ways:
//
//   an answer (2xx, 4xx but 408 and 429)  handed to the caller, who knows which
//                                         status it wants
//   a reason that may pass                tried again, up to `attempts`, then
//                                         OutageError
//   more bytes than we requested        DataError at once: it would be as
//                                         long the next time
//
// Servers are not trusted: a 206 must name the requested range and have its
// length.
#include "s3_client.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cmath>
#include <ctime>
#include <random>
#include <thread>

#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/storage/store.hpp"
#include "chexnet/launch/signals.hpp"
#include "instance_metadata.hpp"
#include "s3_answer.hpp"

namespace chexnet {
namespace {

constexpr double kFirstPauseSeconds = 0.05, kLongestPauseSeconds = 5;
constexpr double kQuietSeconds = 10,
                 kAgainSeconds = 30;  // of lines in the log about an outage
// A machine's keys are fetched again after this time; they are good for hours.
constexpr double kInstanceSeconds = 300;

// The bucket becomes part of a host's name: labels between dots, which begin
// and end with a letter or digit. Old buckets of Amazon have up to 255
// characters, '_' and capitals.
bool is_bucket_name(const std::string& name) {
  const auto alphanumeric = [](unsigned char c) {
    return std::isalnum(c) != 0;
  };
  char before = '.';
  for (const char c : name + '.') {
    const bool at_border = c == '.' || before == '.';
    if (!alphanumeric(static_cast<unsigned char>(c)) &&
        (std::string_view(".-_").find(c) == std::string_view::npos ||
         (at_border && !alphanumeric(static_cast<unsigned char>(before)))))
      return false;
    before = c;
  }
  return !name.empty() && name.size() <= 255;
}

std::string amz_time() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[20];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

// Not implemented, and no space, are answers that stay.
bool may_pass(const HttpResponse& r) {
  if (r.status == 501 || r.status == 507) return false;
  return r.status == 0 || r.status >= 500 || r.status == 429 || r.status == 408;
}

// Full jitter: a random time up to the doubled pause, so that a thousand
// readers do not come back at once.
double random_pause_s(int attempt) {
  thread_local std::minstd_rand random(static_cast<unsigned>(
      std::hash<std::thread::id>()(std::this_thread::get_id())));
  const double longest =
      std::min(kLongestPauseSeconds, std::ldexp(kFirstPauseSeconds, attempt));
  return std::uniform_real_distribution<>(0, longest)(random);
}

}  // namespace

S3Address address_of(const std::string& path) {
  assert(is_s3(path));
  const std::string rest = path.substr(5);  // after s3://
  const auto slash = rest.find('/');
  if (rest.empty() || slash == 0)
    throw ConfigError("[s3] {} names no bucket. Hint: s3://bucket/prefix",
                      path);
  const std::string bucket = rest.substr(0, slash);
  if (!is_bucket_name(bucket))
    throw ConfigError(
        "[s3] {}: '{}' is no name of a bucket. Hint: letters, digits, '.', '-' "
        "and '_', a letter or digit at each end and beside each '.'",
        path, bucket);
  return {bucket, slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

S3Client::S3Client(S3World world, const S3Options& options,
                   const Environment& env)
    : world_(std::move(world)),
      options_(options),
      region_(find_region(options, env)),
      credentials_(find_credentials(options, env)),
      searched_(credentials_searched(options, env)),
      outages_("s3", std::min(kQuietSeconds, options.timeout_s / 2),
               kAgainSeconds) {
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (const char* url = env(name);
        options_.endpoint.empty() && url != nullptr)
      options_.endpoint = url;
  while (options_.endpoint.ends_with('/')) options_.endpoint.pop_back();
  const std::string problem = endpoint_problem(options_.endpoint);
  if (!problem.empty()) throw ConfigError("[s3] {}", problem);
}

HttpResponse S3Client::send(const S3Call& call, std::vector<std::byte>& body) {
  const double since = world_.now_s();
  for (int attempt = 1;; ++attempt) {
    const HttpRequest wanted = request(call);
    HttpResponse response = world_.exchange(wanted, body);
    // It would be as long the next time.
    const bool came = response.status != 0 && response.status < 300;
    if (response.too_long || (came && body.size() > call.max_bytes))
      throw DataError(
          "[s3] {}: the answer is longer than the {} bytes that were asked for "
          "or are allowed. Hint: check data.s3.endpoint; is there a proxy "
          "between?",
          call.path, call.max_bytes);
    const std::string damage = came ? call.damage(response, body) : "";
    if (!may_pass(response) && damage.empty()) {
      outages_.worked();
      return response;
    }
    const std::string reason =
        damage.empty() ? s3_reason(response, body) : damage;
    if (attempt >= attempts_of(call) || call.stop.stop_requested())
      throw OutageError(
          "[s3] {}: {}, after {} attempts. Hint: check the network and "
          "data.s3.endpoint; start again when the server answers",
          call.path, reason, attempt);
    outages_.failed(since,
                    reason + ", attempt " + std::to_string(attempt) + " of " +
                        std::to_string(options_.attempts) +
                        ". Hint: check the network and data.s3.endpoint");
    world_.pause(random_pause_s(attempt), call.stop);
  }
}

// After a stop request a read has at most two attempts. The Loader takes the
// outage for the stop; elsewhere it ends the start. Writes are still retried.
int S3Client::attempts_of(const S3Call& call) const {
  constexpr int kOfStopped = 2;
  const bool gives_up = stop_requested() && call.method == "GET";
  return gives_up ? std::min(kOfStopped, options_.attempts) : options_.attempts;
}

HttpRequest S3Client::request(const S3Call& call) {
  const auto* text = reinterpret_cast<const char*>(call.body.data());
  SignedRequest request;
  request.method = call.method;
  const std::string base = set_address(address_of(call.path), request);
  request.query = call.query;
  request.body_sha256 = sha256_hex({text, call.body.size()});
  request.headers.insert(call.headers.begin(), call.headers.end());

  HttpRequest http;
  http.method = call.method;
  http.body = call.body;
  http.stop = call.stop;
  http.timeout_s = options_.timeout_s;
  http.total_s = call.total_s;
  // Error texts are longer than small ranges.
  http.max_bytes = std::max<uint64_t>(call.max_bytes, 64 << 10);
  if (const auto credentials = current_credentials()) {
    const std::string time = amz_time();
    request.headers["x-amz-content-sha256"] = request.body_sha256;
    request.headers["x-amz-date"] = time;
    if (!credentials->session_token.empty())
      request.headers["x-amz-security-token"] = credentials->session_token;
    http.headers["authorization"] =
        authorization(request, *credentials, region_, "s3", time);
  }
  http.headers.insert(request.headers.begin(), request.headers.end());
  http.url = base + uri_encode(request.path, true);
  if (!call.query.empty()) http.url += "?" + canonical_query(call.query);
  return http;
}

// Path and host; returns scheme and host. Amazon's buckets are hosts, others'
// are folders.
std::string S3Client::set_address(const S3Address& where,
                                  SignedRequest& request) const {
  if (options_.endpoint.empty()) {
    const std::string host = where.bucket + ".s3." + region_ + ".amazonaws.com";
    request.path = "/" + where.key;
    request.headers["host"] = host;
    return "https://" + host;
  }
  request.path =
      "/" + where.bucket + (where.key.empty() ? "" : "/" + where.key);
  request.headers["host"] =
      options_.endpoint.substr(options_.endpoint.find("://") + 3);
  return options_.endpoint;
}

std::optional<Credentials> S3Client::current_credentials() {
  if (credentials_ || !options_.instance_metadata) return credentials_;
  const std::lock_guard lock(mutex_);
  const double now = world_.now_s();
  if (!instance_ || now >= instance_until_s_) {
    instance_ = instance_credentials(world_.exchange);
    instance_until_s_ = now + kInstanceSeconds;
  }
  return instance_;
}

void S3Client::refuse(const std::string& path, const HttpResponse& r,
                      std::span<const std::byte> body) const {
  const bool is_signed = credentials_ || options_.instance_metadata;
  throw_refused(
      path, r, body,
      is_signed ? "" : "no credentials found (looked at " + searched_ + ")");
}

}  // namespace chexnet
