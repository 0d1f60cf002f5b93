// Writing to an object store, against a script of answers.
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/md5.hpp"
#include "data/storage/s3_world.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Sent {
  std::string method, url;
  std::map<std::string, std::string> headers;
  size_t bytes = 0;
};

// Gives the answers in turn, the last one for ever.
struct WriteServer {
  std::deque<std::pair<HttpResponse, std::string>> answers;
  std::vector<Sent> sent;

  std::unique_ptr<ObjectStore> store() {
    S3World world;
    world.exchange = [this](const HttpRequest& request,
                            std::vector<std::byte>& body) {
      sent.push_back(
          {request.method, request.url, request.headers, request.body.size()});
      auto [response, text] = answers.front();
      if (answers.size() > 1) answers.pop_front();
      const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
      body.assign(bytes.begin(), bytes.end());
      return response;
    };
    world.pause = [](double, const std::stop_token&) {};
    S3Options options;
    options.endpoint = "http://minio:9000";
    options.attempts = 3;
    return s3_store_in(std::move(world), options, [](const char* name) {
      const std::string_view asked = name;
      if (asked == "AWS_ACCESS_KEY_ID") return "id";
      return asked == "AWS_SECRET_ACCESS_KEY" ? "secret" : nullptr;
    });
  }
};

HttpResponse done(const std::string& etag = "") {
  return {200, {}, {}, false, etag};
}
HttpResponse length(uint64_t bytes) {
  return {206, {}, "bytes 0-0/" + std::to_string(bytes)};
}
std::pair<HttpResponse, std::string> refused_with(int status,
                                                  const std::string& code) {
  return {{status},
          "<Error><Code>" + code + "</Code><Message>Said so</Message></Error>"};
}
const std::pair<HttpResponse, std::string> kUpload = {
    done(), "<R><UploadId>upload-1</UploadId></R>"};

std::string file_of(const ScratchFolder& folder, uint64_t bytes) {
  std::string path = folder.write("weights", "");
  std::filesystem::resize_file(path, bytes);
  return path;
}

std::string etag_of_zeros(uint64_t bytes) {
  return '"' + md5_hex(std::vector<std::byte>(bytes)) + '"';
}

}  // namespace

TEST_CASE(
    "an object is put with the SHA-256 of its content under the signature") {
  WriteServer server;
  server.answers = {{done('"' + md5_hex({}) + '"'), ""}};
  server.store()->put("s3://b/a key", "");
  REQUIRE(server.sent.size() == 1);
  CHECK(server.sent[0].method == "PUT");
  CHECK(server.sent[0].url == "http://minio:9000/b/a%20key");
  CHECK(
      server.sent[0].headers.at("x-amz-content-sha256").starts_with("e3b0c4"));
  CHECK(server.sent[0].headers.at("authorization").find("content-type") !=
        std::string::npos);
}

TEST_CASE("what the server stored otherwise than it was sent is sent again") {
  WriteServer server;
  server.answers = {{done("\"00000000000000000000000000000000\""), ""},
                    {done("\"5d41402abc4b2a76b9719d911017c592\""), ""}};
  server.store()->put("s3://b/k", "hello");
  CHECK(server.sent.size() == 2);
  server.answers = {{done("\"00000000000000000000000000000000\""), ""}};
  CHECK(error_of<OutageError>([&] {
          server.store()->put("s3://b/k", "hello");
        }).find("not what was sent") != std::string::npos);
}

TEST_CASE("an ETag that is no MD5, or of encrypted objects, says nothing") {
  WriteServer server;
  HttpResponse encrypted = done("\"00000000000000000000000000000000\"");
  encrypted.is_encrypted = true;
  server.answers = {{encrypted, ""}, {done("\"abc-3\""), ""}};
  const auto store = server.store();
  store->put("s3://b/k", "hello");
  store->put("s3://b/k", "hello");
  CHECK(server.sent.size() == 2);
}

TEST_CASE("a large file goes up in parts and is looked at when it is there") {
  const ScratchFolder folder;
  WriteServer server;
  server.answers = {kUpload,
                    {done(etag_of_zeros(16 * kMiB)), ""},
                    {done(etag_of_zeros(16 * kMiB)), ""},
                    {done(etag_of_zeros(1)), ""},
                    {done(), "<CompleteMultipartUploadResult/>"},
                    {length(32 * kMiB + 1), "x"}};
  server.store()->put_file("s3://b/w", file_of(folder, 32 * kMiB + 1));
  REQUIRE(server.sent.size() == 6);
  CHECK(server.sent[0].url.ends_with("/b/w?uploads="));
  CHECK(server.sent[1].url.ends_with("?partNumber=1&uploadId=upload-1"));
  CHECK(server.sent[1].bytes == 16 * kMiB);
  CHECK(server.sent[3].bytes == 1);
  CHECK(server.sent[4].method == "POST");
  CHECK(server.sent[5].method == "GET");
}

TEST_CASE("parts are taken back when one of them is refused") {
  const ScratchFolder folder;
  WriteServer server;
  server.answers = {kUpload,
                    {done(), ""},
                    refused_with(507, "XMinioStorageFull"),
                    {{204}, ""}};
  const std::string error = error_of<AbsentError>([&] {
    server.store()->put_file("s3://b/w", file_of(folder, 40 * kMiB));
  });
  CHECK(error.find("XMinioStorageFull") != std::string::npos);
  CHECK(error.find("is full") != std::string::npos);
  REQUIRE(server.sent.size() == 4);
  CHECK(server.sent[3].method == "DELETE");
  CHECK(server.sent[3].url.ends_with("?uploadId=upload-1"));
}

TEST_CASE(
    "an upload whose end was answered by nobody counts when the object is "
    "there") {
  const ScratchFolder folder;
  const auto answers = [](uint64_t bytes) {
    return std::deque<std::pair<HttpResponse, std::string>>{
        kUpload,
        {done(), ""},
        {done(), ""},
        {{0, "reset"}, ""},
        refused_with(404, "NoSuchUpload"),
        {length(bytes), "x"}};
  };
  WriteServer server;
  server.answers = answers(17 * kMiB);
  server.store()->put_file("s3://b/w", file_of(folder, 17 * kMiB));
  CHECK(server.sent.size() == 6);
  server.answers = answers(5);
  CHECK_THROWS_AS(
      server.store()->put_file("s3://b/w", file_of(folder, 17 * kMiB)),
      AbsentError);
}

TEST_CASE(
    "an end of an upload that begins well and says an error is tried again") {
  const ScratchFolder folder;
  WriteServer server;
  server.answers = {
      kUpload,      {done(), ""},
      {done(), ""}, {done(), "<Error><Code>InternalError</Code></Error>"},
      {done(), ""}, {length(17 * kMiB), "x"}};
  server.store()->put_file("s3://b/w", file_of(folder, 17 * kMiB));
  CHECK(server.sent.size() == 6);
}

TEST_CASE("what is not there needs no removing") {
  WriteServer server;
  server.answers = {{{204}, ""},
                    refused_with(404, "NoSuchKey"),
                    refused_with(403, "AccessDenied")};
  const auto store = server.store();
  store->remove("s3://b/k");
  store->remove("s3://b/k");
  CHECK_THROWS_AS(store->remove("s3://b/k"), AbsentError);
}
