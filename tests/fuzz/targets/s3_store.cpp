// An object store whose server answers anything: reads give the requested bytes
// or an error, listings end.
//
// The input is the caller's settings (one byte), the requested path up to a
// line break, and answers, a NUL between them: status (one byte), Content-Range
// up to a line break, body.
#include <deque>
#include <map>

#include "chexnet/core/error.hpp"
#include "data/storage/s3_world.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

struct Answer {
  HttpResponse response;
  std::string body;
};

Answer answer_of(const std::string& text) {
  static constexpr int kStatus[] = {0,   200, 206, 301, 403, 404,
                                    408, 416, 429, 500, 503};
  const auto bytes = bytes_of(text);
  Reader fields(bytes);
  Answer answer;
  answer.response.status = kStatus[fields.byte() % std::size(kStatus)];
  if (answer.response.status == 0) answer.response.failure = "reset";
  answer.response.content_range = fields.until('\n');
  answer.body = text_of(fields.rest());
  return answer;
}

// What the user's shell and config say.
struct Caller {
  explicit Caller(uint8_t choices) {
    if (choices & 1)
      variables = {{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "B"}};
    if (choices & 2) variables["AWS_SESSION_TOKEN"] = "C";
    if (choices & 4)
      variables["AWS_ENDPOINT_URL"] = "http://minio:9000/";
    else if (!(choices & 8))
      options.endpoint = "http://minio:9000";
    options.instance_metadata = choices & 16;
    options.attempts = 3;
  }
  std::map<std::string_view, const char*> variables;
  S3Options options;
};

void run(Bytes bytes) {
  Reader input(bytes);
  const Caller caller(input.byte());
  const std::string path = "s3://" + input.until('\n');
  std::deque<Answer> answers;
  while (!input.rest().empty()) answers.push_back(answer_of(input.until('\0')));
  S3World world;
  world.exchange = [&](const HttpRequest& request,
                       std::vector<std::byte>& body) -> HttpResponse {
    require(request.url.find_first_of(" \r\n") == std::string::npos,
            "a URL has neither blanks nor line breaks");
    for (const auto& [name, value] : request.headers)
      require((name + value).find_first_of("\r\n") == std::string::npos,
              "a header is one line");
    body.clear();
    if (answers.empty()) return {404, {}, {}};
    const Answer answer = answers.front();
    answers.pop_front();
    body = bytes_of(answer.body);
    if (body.size() > request.max_bytes) return {0, "too long", {}, true};
    return answer.response;
  };
  world.pause = [](double, const std::stop_token&) {};
  const auto store =
      s3_store_in(std::move(world), caller.options, [&](const char* name) {
        const auto found = caller.variables.find(name);
        return found == caller.variables.end() ? nullptr : found->second;
      });
  std::vector<std::byte> into;
  if (accepted<ConfigError, DataError, AbsentError, OutageError>(
          [&] { store->read(path, 5, 7, into, {}); }))
    require(into.size() <= 7, "no more comes than was asked for");
  accepted<ConfigError, DataError, AbsentError, OutageError>(
      [&] { store->read_whole(path, into, {}); });
  accepted<DataError, AbsentError, OutageError>([&] {
    for (const auto& file : store->list("s3://b/a"))
      require(file.path.starts_with("s3://b/a"), "a listing stays below");
  });
  accepted<DataError, AbsentError, OutageError>(
      [&] { store->exists("s3://b/x"); });
}

std::vector<std::string> seeds() {
  const std::string nul(1, '\0');
  const std::string listing =
      "\x01\n<ListBucketResult><Contents><Key>a/1.png</Key><Size>5</Size>"
      "</Contents></ListBucketResult>";
  return {std::string(1, '\0') +
              "b/a b/x\n\x02"
              "bytes 5-11/40\nabcdefg" +
              nul + "\x01\nwhole" + nul + listing + nul +
              "\x02"
              "bytes 0-0/9\na",
          "\x03"
          "b/x\n\x02"
          "bytes 5-6/7\nab" +
              nul + "\x0a\n" + nul + "\x01\nx" + nul + listing,
          "\x04"
          "b/x\n\x07\n" +
              nul + "\x04\n<Error><Code>AccessDenied</Code></Error>",
          "\x08"
          "b/x\n\x02"
          "bytes 5-6/7\nab",
          "\x10"
          "b/x\n\x01\ntoken" +
              nul + "\x01\nrole" + nul +
              "\x01\n{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"B\"}" + nul +
              "\x02"
              "bytes 5-6/7\nab",
          "\x01/x\n",
          "\x01-b/x\n"};
}

const Registered kTarget{{"s3_store", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
