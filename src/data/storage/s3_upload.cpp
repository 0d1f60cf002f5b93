// A large file goes up in parts:
//
//   POST ?uploads                       -> an id; nothing is visible yet
//   PUT ?partNumber=N&uploadId=ID       -> an ETag each
//   POST ?uploadId=ID with all ETags    -> the object is there, whole
//   DELETE ?uploadId=ID                 where any of these failed
//
// The last answer may be lost although the object was made: asked again, the
// server knows no such upload. Then the object's length tells.
#include "s3_upload.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "chexnet/core/error.hpp"
#include "chexnet/core/md5.hpp"
#include "chexnet/core/read_file.hpp"
#include "s3_answer.hpp"

namespace chexnet {
namespace {

constexpr uint64_t kMostParts = 10'000;  // S3 takes no more

using Bytes = std::vector<std::byte>;

class UploadedFile {
 public:
  explicit UploadedFile(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw_unreadable("s3", path.string(), errno);
    const off_t end = ::lseek(fd_, 0, SEEK_END);
    size_ = end < 0 ? 0 : static_cast<uint64_t>(end);
  }
  ~UploadedFile() { ::close(fd_); }
  UploadedFile(const UploadedFile&) = delete;
  UploadedFile& operator=(const UploadedFile&) = delete;
  uint64_t size() const { return size_; }
  Bytes read(uint64_t offset, uint64_t count) const {
    Bytes bytes(count);
    const auto got = read_at(fd_, offset, bytes);
    if (got < 0) throw_unreadable("s3", path_.string(), errno);
    if (static_cast<uint64_t>(got) != count)
      throw DataError(
          "[s3] {}: became shorter while it was sent. Hint: does another "
          "program write it?",
          path_.string());
    return bytes;
  }

 private:
  std::filesystem::path path_;
  int fd_;
  uint64_t size_ = 0;
};

std::string without_quotes(std::string etag) {
  std::erase(etag, '"');
  return etag;
}

bool is_md5(const std::string& text) {
  return text.size() == 32 &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The text of one tag, or refused.
std::string one_value(S3Client& client, const S3Call& call, const char* tag) {
  Bytes body;
  const HttpResponse r = client.send(call, body);
  if (r.status != 200) client.refuse(call.path, r, body);
  const auto values = xml_values(text_of(body), tag);
  if (values.size() != 1)
    throw DataError(
        "[s3] {}: the answer has no {}. Hint: check data.s3.endpoint",
        call.path, tag);
  return values.front();
}

void abort(S3Client& client, const std::string& path, const std::string& id) {
  Bytes body;
  client.send({.method = "DELETE", .path = path, .query = {{"uploadId", id}}},
              body);
}

// Of an object as it stands; nothing where there is none.
std::string length_of(S3Client& client, const std::string& path) {
  Bytes body;
  const HttpResponse r = client.send(
      {.path = path, .headers = {{"range", "bytes=0-0"}}, .max_bytes = 1},
      body);
  return r.content_range.substr(r.content_range.find('/') + 1);
}

void complete(S3Client& client, const std::string& path, const std::string& id,
              const std::vector<std::string>& etags, uint64_t size) {
  std::string list = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i)
    list += "<Part><PartNumber>" + std::to_string(i + 1) +
            "</PartNumber><ETag>" + etags[i] + "</ETag></Part>";
  list += "</CompleteMultipartUpload>";
  S3Call call{.method = "POST",
              .path = path,
              .query = {{"uploadId", id}},
              .headers = {{"content-type", "application/xml"}},
              .body = std::as_bytes(std::span(list.data(), list.size()))};
  // S3 may say 200 first and what went wrong afterwards.
  call.damage = [](const HttpResponse& r, std::span<const std::byte> body) {
    const std::string text(reinterpret_cast<const char*>(body.data()),
                           body.size());
    return text.find("<Error>") == std::string::npos ? std::string()
                                                     : s3_reason(r, body);
  };
  Bytes body;
  const HttpResponse r = client.send(call, body);
  const bool is_gone = r.status == 404;  // made by an attempt before, perhaps
  if (r.status != 200 && !is_gone) client.refuse(path, r, body);
  const std::string length = length_of(client, path);
  if (length == std::to_string(size)) return;
  if (is_gone) client.refuse(path, r, body);
  throw DataError(
      "[s3] {}: {} bytes were sent, and the object has {}. Hint: does somebody "
      "else write it? Else start again",
      path, size, length);
}

}  // namespace

S3Call put_call(const std::string& path, std::span<const std::byte> bytes) {
  S3Call call{.method = "PUT",
              .path = path,
              .headers = {{"content-type", "application/octet-stream"}},
              .body = bytes};
  call.damage = [bytes](const HttpResponse& r, std::span<const std::byte>) {
    const std::string etag = without_quotes(r.etag), own = md5_hex(bytes);
    const bool differs =
        !r.is_encrypted && is_md5(etag) && !own.empty() && etag != own;
    return differs ? "what the server stored is not what was sent (ETag)"
                   : std::string();
  };
  return call;
}

void upload_file(S3Client& client, const std::string& path,
                 const std::filesystem::path& file, uint64_t part_bytes) {
  const UploadedFile source(file);
  const uint64_t size = source.size();
  Bytes body;
  if (size <= part_bytes) {
    const Bytes bytes = source.read(0, size);
    const HttpResponse r = client.send(put_call(path, bytes), body);
    if (r.status != 200) client.refuse(path, r, body);
    return;
  }
  const uint64_t part = std::max(part_bytes, size / kMostParts + 1);
  const std::string id = one_value(
      client, {.method = "POST", .path = path, .query = {{"uploads", ""}}},
      "UploadId");
  try {
    std::vector<std::string> etags;
    for (uint64_t at = 0; at < size; at += part) {
      const Bytes bytes = source.read(at, std::min(part, size - at));
      S3Call call = put_call(path, bytes);
      call.query = {{"partNumber", std::to_string(etags.size() + 1)},
                    {"uploadId", id}};
      const HttpResponse r = client.send(call, body);
      if (r.status != 200) client.refuse(path, r, body);
      etags.push_back(r.etag);
    }
    complete(client, path, id, etags, size);
  } catch (const Error&) {
    try {
      abort(client, path, id);
    } catch (const Error&) {  // what failed first is what is told
    }
    throw;
  }
}

}  // namespace chexnet
