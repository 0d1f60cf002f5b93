#include "chexnet/storage/s3_store.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <thread>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "http.hpp"

namespace chexnet {
namespace {

constexpr std::uint64_t kLargestObject = 1ull << 33;  // of one read, bytes
constexpr double kFirstPauseSeconds = 0.05, kLongestPauseSeconds = 5;

struct Address {
  std::string bucket, key;
};

Address address_of(const std::string& path) {
  const std::string rest = path.substr(5);  // after s3://
  const auto slash = rest.find('/');
  if (rest.empty() || slash == 0)
    throw ConfigError("[s3] " + path + " names no bucket. Hint: s3://bucket/prefix");
  if (slash == std::string::npos) return {rest, ""};
  return {rest.substr(0, slash), rest.substr(slash + 1)};
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

// The text of each <tag>…</tag>, entities resolved.
std::vector<std::string> xml_values(std::string_view xml, const std::string& tag) {
  std::vector<std::string> values;
  const std::string open = "<" + tag + ">", close = "</" + tag + ">";
  for (std::size_t at = 0; (at = xml.find(open, at)) != std::string_view::npos;) {
    at += open.size();
    const auto end = xml.find(close, at);
    if (end == std::string_view::npos) break;
    std::string value(xml.substr(at, end - at));
    for (const auto& [entity, c] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})
      for (std::size_t i = 0; (i = value.find(entity, i)) != std::string::npos; ++i)
        value.replace(i, std::strlen(entity), c);
    values.push_back(std::move(value));
    at = end;
  }
  return values;
}

class S3Store final : public Store {
 public:
  S3Store(const S3Options& options, const Environment& env)
      : options_(options),
        region_(find_region(options, env)),
        credentials_(find_credentials(options, env)) {
    for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
      if (const char* url = env(name); options_.endpoint.empty() && url != nullptr)
        options_.endpoint = url;
    while (options_.endpoint.ends_with('/')) options_.endpoint.pop_back();
    if (!options_.endpoint.empty() && !options_.endpoint.starts_with("http://") &&
        !options_.endpoint.starts_with("https://"))
      throw ConfigError("[s3] data.s3.endpoint " + options_.endpoint +
                        " is no URL. Hint: https://host:port");
  }

  void read(const std::string& path, std::uint64_t offset, std::uint64_t count,
            std::vector<std::byte>& into) override {
    if (count == 0) return into.clear();
    const std::string range =
        "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + count - 1);
    const HttpResponse r = get(path, {}, range, count, into);
    if (r.status == 416) return into.clear();  // behind the end
    require(path, r, 206);
    // A server or proxy that answers with another range would hand over wrong bytes.
    const std::string begun =
        "bytes " + std::to_string(offset) + "-" + std::to_string(offset + into.size() - 1) + "/";
    if (into.empty() || !r.content_range.starts_with(begun))
      throw DataError("[s3] " + path + ": asked for " + range + ", got '" + r.content_range +
                      "' with " + std::to_string(into.size()) +
                      " bytes. Hint: does a proxy stand between?");
  }

  void read_whole(const std::string& path, std::vector<std::byte>& into) override {
    require(path, get(path, {}, "", kLargestObject, into), 200);
  }

  using Store::list;
  std::vector<StoredFile> list(const std::string& path,
                               const std::function<void()>& tick) override {
    const Address where = address_of(path);
    std::vector<StoredFile> files;
    std::string token;
    std::vector<std::byte> body;
    do {
      std::vector<std::pair<std::string, std::string>> query = {{"list-type", "2"},
                                                                {"prefix", where.key}};
      if (!token.empty()) query.emplace_back("continuation-token", token);
      const std::string bucket = "s3://" + where.bucket;
      require(path, get(bucket, query, "", kLargestObject, body), 200);
      const std::string_view xml(reinterpret_cast<const char*>(body.data()), body.size());
      const auto keys = xml_values(xml, "Key"), sizes = xml_values(xml, "Size"),
                 tags = xml_values(xml, "ETag");
      const bool has_tags = tags.size() == keys.size();
      if (keys.size() != sizes.size())
        throw DataError("[s3] " + path + ": the listing is not S3's. Hint: check data.s3.endpoint");
      for (std::size_t i = 0; i < keys.size(); ++i) {
        // A prefix is a folder or one object, not the beginning of a name.
        const bool below = where.key.empty() || where.key.ends_with('/') || keys[i] == where.key ||
                           keys[i].starts_with(where.key + "/");
        const auto name = keys[i].substr(keys[i].rfind('/') + 1);
        if (below && !name.empty() && !name.starts_with('.'))
          files.push_back(
              {bucket + "/" + keys[i], std::stoull(sizes[i]), has_tags ? tags[i] : std::string()});
      }
      tick();
      const auto next = xml_values(xml, "NextContinuationToken");
      token = next.empty() ? "" : next.front();
    } while (!token.empty());
    if (files.empty())
      throw DataError("[s3] " + path + ": nothing is stored there. Hint: check data.images");
    return files;
  }

  bool exists(const std::string& path) override {
    std::vector<std::byte> body;
    const HttpResponse r = get(path, {}, "bytes=0-0", 1, body);
    if (r.status == 404 || r.status == 403) return false;  // 403: no right to list
    return r.status == 206 || r.status == 416 || r.status == 200;
  }

 private:
  HttpResponse get(const std::string& path,
                   const std::vector<std::pair<std::string, std::string>>& query,
                   const std::string& range, std::uint64_t max_bytes,
                   std::vector<std::byte>& body) {
    const Address where = address_of(path);
    HttpResponse response;
    for (int attempt = 0; attempt < options_.attempts; ++attempt) {
      if (attempt > 0) pause(attempt);
      response = http_exchange(request(where, query, range, max_bytes), body);
      // An error page must not be taken for a short answer.
      if (response.status != 0 && response.status < 300 && max_bytes < kLargestObject &&
          body.size() > max_bytes)
        response = {0, "more bytes than asked for", {}};
      if (!may_pass(response)) return response;
    }
    throw DataError(
        "[s3] " + path + ": " +
        (response.status == 0 ? response.failure : "HTTP " + std::to_string(response.status)) +
        ", after " + std::to_string(options_.attempts) +
        " attempts. Hint: check the network and data.s3.endpoint");
  }

  HttpRequest request(const Address& where,
                      const std::vector<std::pair<std::string, std::string>>& query,
                      const std::string& range, std::uint64_t max_bytes) {
    static const std::string kNoBody = sha256_hex("");
    HttpRequest http;
    http.timeout_s = options_.timeout_s;
    // Error texts are longer than small ranges.
    http.max_bytes = std::max<std::uint64_t>(max_bytes, 64 << 10);
    SignedRequest request;
    std::string base;
    if (options_.endpoint.empty()) {
      const std::string host = where.bucket + ".s3." + region_ + ".amazonaws.com";
      base = "https://" + host;
      request.path = "/" + where.key;
      request.headers["host"] = host;
    } else {
      base = options_.endpoint;
      request.path = "/" + where.bucket + (where.key.empty() ? "" : "/" + where.key);
      request.headers["host"] = base.substr(base.find("://") + 3);
    }
    request.query = query;
    request.body_sha256 = kNoBody;
    if (!range.empty()) request.headers["range"] = range;
    if (const auto credentials = current_credentials()) {
      const std::string time = amz_time();
      request.headers["x-amz-content-sha256"] = kNoBody;
      request.headers["x-amz-date"] = time;
      if (!credentials->session_token.empty())
        request.headers["x-amz-security-token"] = credentials->session_token;
      http.headers["authorization"] = authorization(request, *credentials, region_, "s3", time);
    }
    http.headers.insert(request.headers.begin(), request.headers.end());
    http.url = base + uri_encode(request.path, true);
    if (!query.empty()) http.url += "?" + canonical_query(query);
    return http;
  }

  // IMDSv2: a session token, the role's name, its keys (AWS, "Use IMDSv2").
  std::optional<Credentials> current_credentials() {
    if (credentials_ || !options_.instance_metadata) return credentials_;
    const std::lock_guard lock(mutex_);
    if (instance_ && std::chrono::steady_clock::now() < instance_until_) return instance_;
    const std::string base = "http://169.254.169.254/latest/";
    std::vector<std::byte> body;
    const auto fetch = [&](HttpRequest r) {
      r.timeout_s = 2;
      r.max_bytes = 64 << 10;
      if (http_exchange(r, body).status != 200)
        throw DataError(
            "[s3] the instance metadata service gives no credentials. Hint: set "
            "data.s3.instance_metadata only on a cloud machine with a role");
      return std::string(reinterpret_cast<const char*>(body.data()), body.size());
    };
    const std::string token =
        fetch({"PUT", base + "api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}}, 2, 0});
    const std::map<std::string, std::string> with_token = {{"X-aws-ec2-metadata-token", token}};
    const std::string roles = base + "meta-data/iam/security-credentials/";
    const std::string role = fetch({"GET", roles, with_token, 2, 0});
    const auto keys =
        nlohmann::json::parse(fetch({"GET", roles + role, with_token, 2, 0}), nullptr, false);
    if (keys.is_discarded() || !keys.contains("AccessKeyId"))
      throw DataError(
          "[s3] the instance metadata service gives no credentials. Hint: does the "
          "machine have a role?");
    instance_ = Credentials{keys.value("AccessKeyId", ""), keys.value("SecretAccessKey", ""),
                            keys.value("Token", "")};
    instance_until_ = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    return instance_;
  }

  static void require(const std::string& path, const HttpResponse& r, int status) {
    if (r.status == status) return;
    const char* hint = r.status == 404   ? "no such bucket or key: check data.images"
                       : r.status == 403 ? "access denied: check the credentials (environment or "
                                           "data.s3.profile), the bucket's rights and the clock"
                       : r.status == 301 || r.status == 400
                           ? "check data.s3.region and data.s3.endpoint"
                           : "check data.s3.endpoint";
    throw DataError("[s3] " + path + ": HTTP " + std::to_string(r.status) + ". Hint: " + hint);
  }

  // Full jitter: a random time up to the doubled pause, so that a thousand readers do not come back
  // at once.
  static void pause(int attempt) {
    thread_local std::minstd_rand random(
        static_cast<unsigned>(std::hash<std::thread::id>()(std::this_thread::get_id())));
    const double longest =
        std::min(kLongestPauseSeconds, kFirstPauseSeconds * static_cast<double>(1 << attempt));
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::uniform_real_distribution<>(0, longest)(random)));
  }

  S3Options options_;
  std::string region_;
  std::optional<Credentials> credentials_;
  std::mutex mutex_;  // guards the two below
  std::optional<Credentials> instance_;
  std::chrono::steady_clock::time_point instance_until_;
};

}  // namespace

std::unique_ptr<Store> s3_store(const S3Options& options, const Environment& env) {
  return std::make_unique<S3Store>(options, env);
}

}  // namespace chexnet
