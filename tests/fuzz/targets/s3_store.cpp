// An object store whose server answers anything: reads give what was asked for
// or an error, listings end.
//
// The input is answers, a NUL between them: status (two bytes), Content-Range
// up to a line break, body.
#include <deque>

#include "chexnet/core/error.hpp"
#include "fuzz/target.hpp"
#include "storage/s3_world.hpp"

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

void run(Bytes bytes) {
  std::deque<Answer> answers;
  for (Reader parts(bytes); !parts.rest().empty();)
    answers.push_back(answer_of(parts.until('\0')));
  S3World world;
  world.exchange = [&](const HttpRequest& request,
                       std::vector<std::byte>& body) -> HttpResponse {
    require(request.url.find_first_of(" \r\n") == std::string::npos,
            "a URL has neither blanks nor line breaks");
    body.clear();
    if (answers.empty()) return {404, {}, {}};
    const Answer answer = answers.front();
    answers.pop_front();
    body = bytes_of(answer.body);
    if (body.size() > request.max_bytes) return {0, "too long", {}, true};
    return answer.response;
  };
  world.pause = [](double, const std::stop_token&) {};
  S3Options options;
  options.endpoint = "http://minio:9000";
  options.attempts = 3;
  const auto store = s3_store_in(std::move(world), options,
                                 [](const char*) { return nullptr; });
  std::vector<std::byte> into;
  if (accepted<DataError, AbsentError, OutageError>(
          [&] { store->read("s3://b/x", 5, 7, into, {}); }))
    require(into.size() <= 7, "no more comes than was asked for");
  accepted<DataError, AbsentError, OutageError>(
      [&] { store->read_whole("s3://b/a b/x", into, {}); });
  accepted<DataError, AbsentError, OutageError>([&] {
    for (const auto& file : store->list("s3://b/a"))
      require(file.path.starts_with("s3://b/a"), "a listing stays below");
  });
  accepted<OutageError, DataError>([&] { store->exists("s3://b/x"); });
}

std::vector<std::string> seeds() {
  const std::string nul(1, '\0');
  const std::string listing =
      "\x01\n<ListBucketResult><Contents><Key>a/1.png</Key><Size>5</Size>"
      "</Contents></ListBucketResult>";
  return {
      "\x02"
      "bytes 5-11/40\nabcdefg" +
          nul + "\x01\nwhole" + nul + listing + nul +
          "\x02"
          "bytes 0-0/9\na",
      "\x02"
      "bytes 5-6/7\nab" +
          nul + "\x0a\n" + nul + "\x01\nx" + nul + listing,
      "\x07\n" + nul + "\x04\n<Error><Code>AccessDenied</Code></Error>"};
}

const Registered kTarget{{"s3_store", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
