// The object store against a script of answers: no server, no waiting.
#include "chexnet/data/storage/s3_store.hpp"

#include <deque>
#include <functional>
#include <map>
#include <span>

#include "chexnet/core/error.hpp"
#include "data/storage/s3_world.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

struct Answer {
  HttpResponse response;
  std::string body;
};

Answer whole(const std::string& body) { return {{200, {}, {}}, body}; }
Answer part(const std::string& range, const std::string& body) {
  return {{206, {}, range}, body};
}
Answer refusal(int status, const std::string& code) {
  return {{status, {}, {}},
          "<Error><Code>" + code +
              "</Code><Message>Said the server.</Message></Error>"};
}
Answer failure(const std::string& why) { return {{0, why, {}}, ""}; }

// Gives the answers in turn, the last one for ever, and keeps the requests.
struct Script {
  std::deque<Answer> answers;
  std::vector<HttpRequest> requests;
  std::vector<double> pauses_s;
  double clock_s = now_s();
  double per_answer_s = 0;
  std::function<void()> at_pause = [] {};

  std::unique_ptr<Store> store(
      const std::map<std::string, std::string>& variables = {},
      S3Options options = {}) {
    S3World world;
    world.exchange = [this](const HttpRequest& request,
                            std::vector<std::byte>& body) {
      requests.push_back(request);
      clock_s += per_answer_s;
      const Answer answer = answers.front();
      if (answers.size() > 1) answers.pop_front();
      const auto bytes =
          std::as_bytes(std::span(answer.body.data(), answer.body.size()));
      body.assign(bytes.begin(), bytes.end());
      return answer.response;
    };
    world.pause = [this](double seconds, const std::stop_token&) {
      pauses_s.push_back(seconds);
      clock_s += seconds;
      at_pause();
    };
    world.now_s = [this] { return clock_s; };
    if (options.endpoint.empty()) options.endpoint = "http://minio:9000";
    kept_ = variables;
    return s3_store_in(
        std::move(world), options, [this](const char* name) -> const char* {
          const auto found = kept_.find(name);
          return found == kept_.end() ? nullptr : found->second.c_str();
        });
  }

 private:
  std::map<std::string, std::string> kept_;
};

const std::map<std::string, std::string> kKeys = {
    {"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "secret"}};

std::string read(Store& store, uint64_t offset, uint64_t count) {
  std::vector<std::byte> bytes;
  store.read("s3://b/x.tar", offset, count, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE(
    "a range is asked for by its first and last byte, signed, at the "
    "endpoint") {
  Script script;
  script.answers = {part("bytes 5-8/100", "abcd")};
  const auto store = script.store(kKeys);
  CHECK(read(*store, 5, 4) == "abcd");
  REQUIRE(script.requests.size() == 1);
  const HttpRequest& request = script.requests[0];
  CHECK(request.url == "http://minio:9000/b/x.tar");
  CHECK(request.headers.at("range") == "bytes=5-8");
  CHECK(request.headers.at("host") == "minio:9000");
  CHECK(request.headers.at("authorization").find("Credential=id/") !=
        std::string::npos);
}

TEST_CASE(
    "without credentials requests go unsigned, and a refusal says where keys "
    "were looked for") {
  Script script;
  script.answers = {refusal(403, "AccessDenied")};
  const auto store = script.store({{"HOME", "/nowhere"}});
  const std::string error = error_of<AbsentError>([&] { read(*store, 0, 4); });
  CHECK_FALSE(script.requests[0].headers.contains("authorization"));
  CHECK(error.find("HTTP 403 AccessDenied: Said the server") !=
        std::string::npos);
  CHECK(error.find("/nowhere/.aws/credentials") != std::string::npos);
  CHECK(script.requests.size() == 1);
}

TEST_CASE(
    "what may pass is tried again with growing pauses at random, and then it "
    "is an outage") {
  for (const Answer& answer :
       {refusal(503, "SlowDown"), refusal(500, "InternalError"),
        refusal(429, "TooManyRequests"), refusal(408, "RequestTimeout"),
        failure("Connection reset by peer"), failure("Operation too slow"),
        failure("transfer closed with bytes remaining")}) {
    Script script;
    script.answers = {answer};
    S3Options options;
    options.attempts = 6;
    const auto store = script.store(kKeys, options);
    const std::string error =
        error_of<OutageError>([&] { read(*store, 0, 4); });
    INFO(error);
    CHECK(error.find("s3://b/x.tar") != std::string::npos);
    CHECK(error.find("after 6 attempts") != std::string::npos);
    CHECK(script.requests.size() == 6);
    REQUIRE(script.pauses_s.size() == 5);
    for (size_t i = 0; i < script.pauses_s.size(); ++i) {
      const double longest = 0.1 * static_cast<double>(1 << i);
      CHECK((script.pauses_s[i] >= 0 && script.pauses_s[i] <= longest));
    }
  }
}

TEST_CASE("an outage that passes is no error") {
  Script script;
  script.answers = {refusal(503, "SlowDown"), failure("timed out"),
                    part("bytes 0-3/9", "abcd")};
  const auto store = script.store(kKeys);
  CHECK(read(*store, 0, 4) == "abcd");
  CHECK(script.requests.size() == 3);
}

TEST_CASE("a stop ends the attempts") {
  Script script;
  script.answers = {failure("timed out")};
  const auto store = script.store(kKeys);
  std::stop_source stop;
  script.at_pause = [&] { stop.request_stop(); };
  std::vector<std::byte> bytes;
  CHECK_THROWS_AS(
      store->read("s3://b/x", 0, 4, bytes, {.stop = stop.get_token()}),
      OutageError);
  CHECK(script.requests.size() == 2);
  CHECK(script.requests[0].stop.stop_possible());
}

TEST_CASE(
    "a part of another range, or of another length than it says, is not "
    "taken") {
  const std::map<std::string, std::string> wrong = {
      {"bytes 4-7/100", "abcd"},  // begins elsewhere
      {"bytes 5-9/100", "abcd"},  // says more than came
      {"bytes 5-7/100", "abcd"},  // says less
      {"", "abcd"},               // says nothing
      {"bytes 5-4/100", ""}};     // nothing
  for (const auto& [range, body] : wrong) {
    Script script;
    script.answers = {part(range, body)};
    const auto store = script.store(kKeys);
    INFO(range);
    CHECK(error_of<DataError>([&] {
            read(*store, 5, 4);
          }).find("asked for bytes=5-8, got '" + range + "'") !=
          std::string::npos);
    CHECK(script.requests.size() == 1);
  }
}

TEST_CASE(
    "the end of an object may cut a part short, and behind it there is "
    "nothing") {
  Script script;
  script.answers = {part("bytes 98-99/100", "yz"), {{416, {}, {}}, "<Error/>"}};
  const auto store = script.store(kKeys);
  CHECK(read(*store, 98, 4) == "yz");
  CHECK(read(*store, 100, 4).empty());
  CHECK(read(*store, 0, 0).empty());
  CHECK(script.requests.size() == 2);
}

TEST_CASE(
    "a server that ignores ranges hands over wrong bytes: they are not taken") {
  Script script;
  script.answers = {whole("abcd")};
  const auto store = script.store(kKeys);
  CHECK_FALSE(error_of<AbsentError>([&] { read(*store, 5, 4); }).empty());
}

TEST_CASE("more bytes than were asked for end the read at once") {
  Script script;
  script.answers = {part("bytes 5-8/100", "abcdefgh")};
  CHECK(error_of<DataError>([&] {
          read(*script.store(kKeys), 5, 4);
        }).find("longer than the 4 bytes") != std::string::npos);
  Answer endless = failure("more bytes than asked for");
  endless.response.too_long = true;
  script.answers = {endless};
  CHECK_THROWS_AS(read(*script.store(kKeys), 5, 4), DataError);
  CHECK(script.requests.size() == 2);
}

TEST_CASE(
    "a redirect and expired keys are refusals with their own hints, not tried "
    "again") {
  const std::map<int, std::pair<std::string, std::string>> cases = {
      {301, {"PermanentRedirect", "data.s3.region"}},
      {307, {"TemporaryRedirect", "data.s3.region"}},
      {400, {"ExpiredToken", "credentials"}},
      {403, {"SignatureDoesNotMatch", "secret key"}},
      {404, {"NoSuchKey", ""}}};
  for (const auto& [status, said] : cases) {
    Script script;
    script.answers = {refusal(status, said.first)};
    const std::string error =
        error_of<AbsentError>([&] { read(*script.store(kKeys), 0, 4); });
    INFO(error);
    CHECK(error.find("HTTP " + std::to_string(status) + " " + said.first) !=
          std::string::npos);
    CHECK(error.find(said.second, error.find("Hint: ")) != std::string::npos);
    CHECK(script.requests.size() == 1);
  }
}

TEST_CASE(
    "a machine's own keys are fetched once, and again when they grow old") {
  Script script;
  const std::string role =
      R"({"AccessKeyId": "role-id", "SecretAccessKey": "s", "Token": "session"})";
  const Answer bytes = part("bytes 0-3/9", "abcd");
  script.answers = {whole("token"), whole("role"), whole(role), bytes, bytes,
                    whole("token"), whole("role"), whole(role), bytes};
  S3Options options;
  options.instance_metadata = true;
  const auto store = script.store({{"HOME", "/nowhere"}}, options);
  read(*store, 0, 4);
  read(*store, 0, 4);
  REQUIRE(script.requests.size() == 5);
  CHECK(script.requests[0].method == "PUT");
  CHECK(script.requests[0].past_proxies);
  CHECK(script.requests[1].headers.at("X-aws-ec2-metadata-token") == "token");
  CHECK(script.requests[2].url.ends_with("/security-credentials/role"));
  CHECK(script.requests[3].headers.at("x-amz-security-token") == "session");
  CHECK_FALSE(script.requests[3].past_proxies);
  script.clock_s += 301;
  read(*store, 0, 4);
  CHECK(script.requests.size() == 9);
}

TEST_CASE("a machine without a role, and one that is none, are told apart") {
  S3Options options;
  options.instance_metadata = true;
  Script script;
  script.answers = {refusal(404, "NotFound")};
  CHECK_THROWS_AS(read(*script.store({{"HOME", "/nowhere"}}, options), 0, 4),
                  AbsentError);
  script.answers = {failure("timed out")};
  CHECK_THROWS_AS(read(*script.store({{"HOME", "/nowhere"}}, options), 0, 4),
                  OutageError);
  for (const char* keys : {"no json", "[]", R"({"AccessKeyId": 5})",
                           R"({"AccessKeyId": "a", "SecretAccessKey": null})",
                           R"({"AccessKeyId": "a"})"}) {
    CAPTURE(keys);
    script.answers = {whole("token"), whole("role"), whole(keys)};
    CHECK_THROWS_AS(read(*script.store({{"HOME", "/nowhere"}}, options), 0, 4),
                    AbsentError);
  }
}

TEST_CASE("a machine's keys may come without a session token") {
  Script script;
  script.answers = {
      whole("token\n"), whole("role\n"),
      whole(R"({"AccessKeyId": "id", "SecretAccessKey": "s", "Token": ""})"),
      part("bytes 0-3/9", "abcd")};
  S3Options options;
  options.instance_metadata = true;
  read(*script.store({{"HOME", "/nowhere"}}, options), 0, 4);
  REQUIRE(script.requests.size() == 4);
  CHECK_FALSE(script.requests[3].headers.contains("x-amz-security-token"));
}

TEST_CASE("what would break the lines of a request never gets into one") {
  S3Options options;
  options.instance_metadata = true;
  const std::string keys =
      R"({"AccessKeyId": "id", "SecretAccessKey": "s", "Token": "a\r\nb"})";
  for (const auto& answers : std::vector<std::vector<Answer>>{
           {whole("a\r\nb: c"), whole("role"), whole("{}")},
           {whole("token"), whole("a b"), whole("{}")},
           {whole("token"), whole("role"), whole(keys)}}) {
    Script script;
    script.answers.assign(answers.begin(), answers.end());
    CHECK_THROWS_AS(read(*script.store({{"HOME", "/nowhere"}}, options), 0, 4),
                    AbsentError);
    for (const auto& request : script.requests)
      for (const auto& [name, value] : request.headers)
        CHECK((name + value).find_first_of("\r\n") == std::string::npos);
  }
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                           "AWS_SESSION_TOKEN", "AWS_REGION"}) {
    CAPTURE(name);
    Script script;
    auto variables = kKeys;
    variables[name] = "canary\r\nx-more: 1";
    try {
      script.store(variables);
      FAIL("it was accepted");
    } catch (const ConfigError& e) {
      const bool is_key = std::string_view(name) != "AWS_REGION";
      CHECK(is_key ==
            (std::string(e.what()).find("canary") == std::string::npos));
    }
  }
}

TEST_CASE("a listing is followed from page to page, below its prefix only") {
  const auto object = [](const std::string& key) {
    return "<Contents><Key>" + key +
           "</Key><Size>7</Size><ETag>e</ETag></Contents>";
  };
  Script script;
  script.answers = {whole("<ListBucketResult>" + object("set/a.png") +
                          object("set/.hidden") + object("settings/b.png") +
                          "<NextContinuationToken>t+1</NextContinuationToken></"
                          "ListBucketResult>"),
                    whole("<ListBucketResult>" + object("set/sub/c.png") +
                          object("set/") + "</ListBucketResult>")};
  int ticks = 0;
  const auto files = script.store(kKeys)->list("s3://b/set", [&] { ++ticks; });
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "s3://b/set/a.png");
  CHECK(files[0].size == 7);
  CHECK(files[1].path == "s3://b/set/sub/c.png");
  CHECK(ticks == 2);
  CHECK(script.requests[1].url.find("continuation-token=t%2B1") !=
        std::string::npos);
  script.answers = {whole("<ListBucketResult></ListBucketResult>")};
  CHECK_THROWS_AS(script.store(kKeys)->list("s3://b/set"), AbsentError);
}

// A server that never comes to an end: pages with ever new tokens, and a last
// one beyond the bounds.
TEST_CASE("a listing is bounded in bytes and in time") {
  const auto page = [](int i, size_t filling) {
    return whole("<ListBucketResult><Contents><Key>set/" + std::to_string(i) +
                 "</Key><Size>1</Size></Contents><NextContinuationToken>t" +
                 std::to_string(i) + "</NextContinuationToken>" +
                 std::string(filling, ' ') + "</ListBucketResult>");
  };
  const auto refusal = [&](int pages, size_t filling, double per_page_s) {
    Script script;
    script.per_answer_s = per_page_s;
    for (int i = 0; i < pages; ++i)
      script.answers.push_back(page(i, i < pages - 1 ? filling : 0));
    script.answers.push_back(whole("<ListBucketResult></ListBucketResult>"));
    return error_of<DataError>(
        [&] { script.store(kKeys)->list("s3://b/set"); });
  };
  CHECK(refusal(3, 1000, 60).empty());
  CHECK(refusal(3, 9'000'000, 0).find("longer than") != std::string::npos);
  CHECK(
      refusal(100, 10, 300).find("the listing never ends: more than 6 hours") !=
      std::string::npos);
}

TEST_CASE("a key that no object store takes is refused") {
  Script script;
  script.answers = {whole("<ListBucketResult><Contents><Key>set/" +
                          std::string(2000, 'x') +
                          "</Key><Size>1</Size></Contents>"
                          "</ListBucketResult>")};
  CHECK(error_of<DataError>([&] {
          script.store(kKeys)->list("s3://b/set");
        }).find("a text of more than 1024 bytes") != std::string::npos);
}

TEST_CASE("a listing that did not come as a whole hides no object") {
  const std::string object =
      "<Contents><Key>set/a.png</Key><Size>7</Size></Contents>";
  Script script;
  script.answers = {
      whole("<ListBucketResult>" + object),
      whole("<ListBucketResult>" + object + object + "</ListBucketResult>")};
  CHECK(script.store(kKeys)->list("s3://b/set").size() == 2);

  script.answers.assign(9, whole("<ListBucketResult>" + object));
  CHECK_THROWS_AS(script.store(kKeys)->list("s3://b/set"), OutageError);
  script.answers = {whole("<ListBucketResult><IsTruncated>true</IsTruncated>" +
                          object + "</ListBucketResult>")};
  CHECK_THROWS_AS(script.store(kKeys)->list("s3://b/set"), DataError);
  script.answers = {whole("<html><body>Please log in</body></html>")};
  CHECK_THROWS_AS(script.store(kKeys)->list("s3://b/set"), DataError);
}

TEST_CASE(
    "an object exists when a byte of it can be read; no right to list is no") {
  const std::map<int, bool> exists = {
      {206, true}, {416, true}, {404, false}, {403, false}};
  for (const auto& [status, wanted] : exists) {
    Script script;
    script.answers = {{{status, {}, {}}, ""}};
    INFO(status);
    CHECK(script.store(kKeys)->exists("s3://b/x.index") == wanted);
  }
}

TEST_CASE(
    "a path without a bucket and an endpoint that is no URL are errors of the "
    "config") {
  Script script;
  const auto store = script.store(kKeys);
  std::vector<std::byte> bytes;
  for (const char* path :
       {"s3://", "s3:///key", "s3://evil.org#/key", "s3://user@host/key"})
    CHECK_THROWS_AS(store->read_whole(path, bytes), ConfigError);
  CHECK(script.requests.empty());
  S3Options options;
  options.endpoint = "minio:9000";
  CHECK_THROWS_AS(script.store(kKeys, options), ConfigError);
}

TEST_CASE("a password in an endpoint is refused and not repeated") {
  Script script;
  S3Options options;
  options.endpoint = "https://somebody:canary@minio:9000";
  try {
    script.store(kKeys, options);
    FAIL("it was accepted");
  } catch (const ConfigError& e) {
    CHECK(std::string(e.what()).find("canary") == std::string::npos);
  }
}

TEST_CASE("Amazon's buckets are hosts of their region") {
  Script script;
  script.answers = {whole("abcd")};
  S3World world;
  world.exchange = [&](const HttpRequest& request,
                       std::vector<std::byte>& body) {
    script.requests.push_back(request);
    body.clear();
    return HttpResponse{200, {}, {}};
  };
  S3Options options;
  options.region = "eu-west-3";
  const auto store =
      s3_store_in(world, options, [](const char*) { return nullptr; });
  std::vector<std::byte> bytes;
  store->read_whole("s3://b/a b/../x.png", bytes);
  CHECK(script.requests[0].url ==
        "https://b.s3.eu-west-3.amazonaws.com/a%20b/../x.png");
}
