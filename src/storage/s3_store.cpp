// An exchange ends in one of three ways:
//
//   an answer (2xx, 4xx but 408 and 429)  handed to the caller, who knows which
//                                         status it wants
//   a reason that may pass                tried again, up to `attempts`, then
//                                         OutageError
//   more bytes than were asked for        DataError at once: it would be as
//                                         long the next time
//
// Nobody is believed: a 206 must name the range that was asked for and have its
// length.
#include "chexnet/storage/s3_store.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cmath>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>

#include "chexnet/config/load.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "instance_metadata.hpp"
#include "s3_answer.hpp"
#include "s3_world.hpp"

namespace chexnet {
namespace {

constexpr double kFirstPauseSeconds = 0.05, kLongestPauseSeconds = 5;
// Of one page; S3's have 1000 keys of at most 1 KiB.
constexpr uint64_t kLongestListing = uint64_t{64} << 20;
constexpr double kQuietSeconds = 10,
                 kAgainSeconds = 30;  // of lines in the log about an outage
// A machine's keys are asked for again after this time; they are good for
// hours.
constexpr double kInstanceSeconds = 300;

struct Address {
  std::string bucket, key;
};

// The bucket becomes part of a host's name: nothing but what a name may hold.
bool is_bucket_name(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= 255 &&
         std::isalnum(static_cast<unsigned char>(name[0])) &&
         std::ranges::all_of(name, allowed);
}

Address address_of(const std::string& path) {
  assert(is_s3(path));
  const std::string rest = path.substr(5);  // after s3://
  const auto slash = rest.find('/');
  if (rest.empty() || slash == 0)
    throw ConfigError("[s3] " + path +
                      " names no bucket. Hint: s3://bucket/prefix");
  const std::string bucket = rest.substr(0, slash);
  if (!is_bucket_name(bucket))
    throw ConfigError(
        "[s3] " + path + ": '" + bucket +
        "' is no name of a bucket. Hint: letters, digits, '.', '-' and '_'");
  return {bucket, slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

std::string amz_time() {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[20];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

bool may_pass(const HttpResponse& r) {
  return r.status == 0 || r.status >= 500 || r.status == 429 || r.status == 408;
}

class S3Store final : public Store {
 public:
  S3Store(S3World world, const S3Options& options, const Environment& env)
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
    if (!problem.empty()) throw ConfigError("[s3] " + problem);
  }

  void read(const std::string& path, uint64_t offset, uint64_t count,
            std::vector<std::byte>& into, const ReadOptions& how) override {
    if (count == 0) return into.clear();
    const std::string range = "bytes=" + std::to_string(offset) + "-" +
                              std::to_string(offset + count - 1);
    const HttpResponse r = get(path, {}, range, count, into, how.stop);
    if (r.status == 416) return into.clear();  // behind the end
    require(path, r, into, 206);
    // A server or proxy that answers with another range would hand over wrong
    // bytes.
    const std::string begun = "bytes " + std::to_string(offset) + "-" +
                              std::to_string(offset + into.size() - 1) + "/";
    if (into.empty() || !r.content_range.starts_with(begun))
      throw DataError("[s3] " + path + ": asked for " + range + ", got '" +
                      r.content_range + "' with " +
                      std::to_string(into.size()) +
                      " bytes. Hint: is there a proxy between?");
  }

  void read_whole(const std::string& path, std::vector<std::byte>& into,
                  const ReadOptions& how) override {
    const HttpResponse r = get(path, {}, "", kLargestWhole, into, how.stop);
    require(path, r, into, 200);
  }

  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>& tick) override {
    const Address where = address_of(path);
    const std::string bucket = "s3://" + where.bucket;
    std::vector<StoredFile> files;
    std::vector<std::byte> body;
    std::string token;
    ListingEnd end;
    do {
      std::vector<std::pair<std::string, std::string>> query = {
          {"list-type", "2"}, {"prefix", where.key}};
      if (!token.empty()) query.emplace_back("continuation-token", token);
      const HttpResponse r = get(bucket, query, "", kLongestListing, body, {});
      require(path, r, body, 200);
      S3Listing page = s3_listing(body, path);
      end.check(page, path);
      for (auto& object : page.objects)
        if (is_below(object.path, where.key))
          files.push_back(
              {bucket + "/" + object.path, object.size, object.version});
      token = std::move(page.next_token);
      tick();
    } while (!token.empty());
    if (files.empty())
      throw AbsentError("[s3] " + path +
                        ": nothing is stored there. Hint: check data.images");
    return files;
  }

  bool exists(const std::string& path) override {
    std::vector<std::byte> body;
    const HttpResponse r = get(path, {}, "bytes=0-0", 1, body, {});
    if (r.status == 404 || r.status == 403)
      return false;  // 403: no right to list
    return r.status == 206 || r.status == 416 || r.status == 200;
  }

 private:
  // A prefix is a folder or one object, not the beginning of a name. Hidden
  // files are skipped.
  static bool is_below(const std::string& key, const std::string& prefix) {
    const bool below = prefix.empty() || prefix.ends_with('/') ||
                       key == prefix || key.starts_with(prefix + "/");
    const auto name = key.substr(key.rfind('/') + 1);
    return below && !name.empty() && !name.starts_with('.');
  }

  HttpResponse get(
      const std::string& path,
      const std::vector<std::pair<std::string, std::string>>& query,
      const std::string& range, uint64_t max_bytes,
      std::vector<std::byte>& body, const std::stop_token& stop) {
    const Address where = address_of(path);
    const double since = world_.now_s();
    for (int attempt = 1;; ++attempt) {
      HttpRequest wanted = request(where, query, range, max_bytes);
      wanted.stop = stop;
      HttpResponse response = world_.exchange(wanted, body);
      // It would be as long the next time.
      const bool came = response.status != 0 && response.status < 300;
      if (response.too_long || (came && body.size() > max_bytes))
        throw DataError(
            "[s3] " + path + ": the answer is longer than the " +
            std::to_string(max_bytes) +
            " bytes that were asked for or are allowed. Hint: check "
            "data.s3.endpoint; is there a proxy between?");
      if (!may_pass(response)) {
        outages_.worked();
        return response;
      }
      const std::string reason = s3_reason(response, body);
      if (attempt >= options_.attempts || stop.stop_requested())
        throw OutageError("[s3] " + path + ": " + reason + ", after " +
                          std::to_string(attempt) +
                          " attempts. Hint: check the network and "
                          "data.s3.endpoint; start again "
                          "when the server answers");
      outages_.failed(since,
                      reason + ", attempt " + std::to_string(attempt) + " of " +
                          std::to_string(options_.attempts) +
                          ". Hint: check the network and data.s3.endpoint");
      world_.pause(random_pause_s(attempt), stop);
    }
  }

  HttpRequest request(
      const Address& where,
      const std::vector<std::pair<std::string, std::string>>& query,
      const std::string& range, uint64_t max_bytes) {
    static const std::string kNoBody = sha256_hex("");
    SignedRequest request;
    const std::string base = set_address(where, request);
    request.query = query;
    request.body_sha256 = kNoBody;
    if (!range.empty()) request.headers["range"] = range;

    HttpRequest http;
    http.timeout_s = options_.timeout_s;
    // Error texts are longer than small ranges.
    http.max_bytes = std::max<uint64_t>(max_bytes, 64 << 10);
    if (const auto credentials = current_credentials()) {
      const std::string time = amz_time();
      request.headers["x-amz-content-sha256"] = kNoBody;
      request.headers["x-amz-date"] = time;
      if (!credentials->session_token.empty())
        request.headers["x-amz-security-token"] = credentials->session_token;
      http.headers["authorization"] =
          authorization(request, *credentials, region_, "s3", time);
    }
    http.headers.insert(request.headers.begin(), request.headers.end());
    http.url = base + uri_encode(request.path, true);
    if (!query.empty()) http.url += "?" + canonical_query(query);
    return http;
  }

  // Path and host; returns scheme and host. Amazon's buckets are hosts, others'
  // are folders.
  std::string set_address(const Address& where, SignedRequest& request) const {
    if (options_.endpoint.empty()) {
      const std::string host =
          where.bucket + ".s3." + region_ + ".amazonaws.com";
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

  std::optional<Credentials> current_credentials() {
    if (credentials_ || !options_.instance_metadata) return credentials_;
    const std::lock_guard lock(mutex_);
    const double now = world_.now_s();
    if (!instance_ || now >= instance_until_s_) {
      instance_ = instance_credentials(world_.exchange);
      instance_until_s_ = now + kInstanceSeconds;
    }
    return instance_;
  }

  void require(const std::string& path, const HttpResponse& r,
               std::span<const std::byte> body, int status) const {
    if (r.status == status) return;
    const bool is_signed = credentials_ || options_.instance_metadata;
    throw_refused(
        path, r, body,
        is_signed ? "" : "no credentials found (looked at " + searched_ + ")");
  }

  // Full jitter: a random time up to the doubled pause, so that a thousand
  // readers do not come back at once.
  static double random_pause_s(int attempt) {
    thread_local std::minstd_rand random(static_cast<unsigned>(
        std::hash<std::thread::id>()(std::this_thread::get_id())));
    const double longest =
        std::min(kLongestPauseSeconds, std::ldexp(kFirstPauseSeconds, attempt));
    return std::uniform_real_distribution<>(0, longest)(random);
  }

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

}  // namespace

std::unique_ptr<Store> s3_store(const S3Options& options,
                                const Environment& env) {
  return s3_store_in({}, options, env);
}

std::unique_ptr<Store> s3_store_in(S3World world, const S3Options& options,
                                   const Environment& env) {
  return std::make_unique<S3Store>(std::move(world), options, env);
}

}  // namespace chexnet
