// A server that answers anything while files are sent to it: either the whole
// file went up or there is an error, and no upload is left half done.
//
// The input is the length of the file (one byte), then answers, a NUL between
// them: status (one byte), ETag up to a line break, Content-Range up to a line
// break, body.
#include <deque>

#include "chexnet/core/error.hpp"
#include "data/storage/s3_world.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

constexpr uint64_t kPart = 8;

struct Answer {
  HttpResponse response;
  std::string body;
};

Answer answer_of(const std::string& text) {
  static constexpr int kStatus[] = {0,   200, 204, 206, 403,
                                    404, 409, 412, 500, 501};
  const auto bytes = bytes_of(text);
  Reader fields(bytes);
  Answer answer;
  answer.response.status = kStatus[fields.byte() % std::size(kStatus)];
  if (answer.response.status == 0) answer.response.failure = "reset";
  answer.response.etag = fields.until('\n');
  answer.response.content_range = fields.until('\n');
  answer.body = text_of(fields.rest());
  return answer;
}

// What the server was asked.
struct Requests {
  std::string bytes;  // of all parts, one after the other
  bool began = false, completed = false, aborted = false;
};

class Server {
 public:
  explicit Server(Reader& input) {
    while (!input.rest().empty())
      answers_.push_back(answer_of(input.until('\0')));
  }

  std::unique_ptr<ObjectStore> store() {
    S3World world;
    world.exchange = [this](const HttpRequest& request,
                            std::vector<std::byte>& body) {
      return answer(request, body);
    };
    world.pause = [](double, const std::stop_token&) {};
    world.part_bytes = kPart;
    S3Options options;
    options.endpoint = "http://minio:9000";
    options.attempts = 2;
    return s3_store_in(std::move(world), options,
                       [](const char*) { return nullptr; });
  }
  const Requests& asked() const { return asked_; }

 private:
  HttpResponse answer(const HttpRequest& request,
                      std::vector<std::byte>& body) {
    require(request.url.starts_with("http://minio:9000/b/x") ||
                request.url.starts_with("http://minio:9000/b?"),
            "nothing but the object and its bucket is asked for");
    require(request.url.find_first_of(" \r\n") == std::string::npos,
            "a URL has neither blanks nor line breaks");
    body.clear();
    Answer next{{404, {}, {}}, ""};
    if (!answers_.empty()) {
      next = answers_.front();
      answers_.pop_front();
    }
    note(request, next);
    body = bytes_of(next.body);
    if (body.size() > request.max_bytes) return {0, "too long", {}, true};
    return next.response;
  }

  void note(const HttpRequest& request, const Answer& next) {
    const bool well = next.response.status == 200;
    if (request.method == "PUT" && well) {
      const std::string part = text_of(request.body);
      // A part whose ETag is of other bytes is sent again.
      if (!asked_.bytes.ends_with(part) || part.empty()) asked_.bytes += part;
    }
    if (request.method == "POST" && request.url.ends_with("?uploads="))
      asked_.began = asked_.began || well;
    else if (request.method == "POST")
      asked_.completed = true;
    if (request.method == "DELETE") asked_.aborted = true;
  }

  std::deque<Answer> answers_;
  Requests asked_;
};

void run(Bytes bytes) {
  Reader input(bytes);
  const int size = input.byte() % 40;
  std::string content;  // each part another
  for (int i = 0; i < size; ++i) content += static_cast<char>('!' + i);
  static MemoryFile file;
  const std::string path = file.holding(bytes_of(content));
  Server server(input);
  const auto store = server.store();
  const bool sent = accepted<DataError, AbsentError, OutageError>(
      [&] { store->put_file("s3://b/x/y", path); });
  const Requests& asked = server.asked();
  if (sent) require(asked.bytes == content, "the whole file was sent");
  if (sent && content.size() > kPart)
    require(asked.completed && !asked.aborted, "its upload was ended well");
  accepted<DataError, AbsentError, OutageError>(
      [&] { store->put("s3://b/x/y", "text"); });
  accepted<DataError, AbsentError, OutageError>(
      [&] { store->remove("s3://b/x/y"); });
}

std::vector<std::string> seeds() {
  const std::string nul(1, '\0');
  const std::string begin = "\x01\n\n<UploadId>u&amp;1</UploadId>";
  const std::string part = "\x01\"e\"\n\n", there = "\x03\nbytes 0-0/20\nx";
  return {"\x04" + part + nul + part + nul + "\x02\n\n",
          "\x14" + begin + nul + part + nul + part + nul + part + nul +
              "\x01\n\n<ETag>e</ETag>" + nul + there,
          "\x14" + begin + nul + part + nul + "\x04\n\n" + nul + "\x02\n\n",
          "\x14" + begin + nul + part + nul + part + nul + part + nul +
              "\x01\n\n<Error><Code>InternalError</Code></Error>" + nul +
              "\x05\n\n" + nul + there,
          "\x10\x01\n\n<UploadId></UploadId><UploadId>2</UploadId>"};
}

const Registered kTarget{{"s3_upload", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
