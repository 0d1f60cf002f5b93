// libcurl's easy interface. The connections of a thread stay open from request
// to request, but each request has a new handle: before libcurl 8.1 (its pull
// request 11103) an answer that begins with a folded header made a handle that
// is used again read freed memory. The body grows as it comes, but never past
// what we requested: a server that sends more is cut off.
#include "http.hpp"

#include <curl/curl.h>
#include <strings.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace chexnet {
namespace {

struct Answer {
  std::vector<std::byte>* body;
  uint64_t max_bytes;
  std::string content_range = {};
  bool too_long = false;
  std::string etag = {};
  bool is_encrypted = false;
};

// As the vector would grow itself, but never past what is allowed.
void make_room(std::vector<std::byte>& body, size_t size, uint64_t max_bytes) {
  if (size <= body.capacity()) return;
  const size_t doubled = std::min<uint64_t>(2 * body.capacity(), max_bytes);
  body.reserve(std::max(size, doubled));
}

size_t on_body(char* data, size_t, size_t count, void* user) {
  auto& answer = *static_cast<Answer*>(user);
  answer.too_long = answer.body->size() + count > answer.max_bytes;
  if (answer.too_long) return 0;  // ends the transfer
  make_room(*answer.body, answer.body->size() + count, answer.max_bytes);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  answer.body->insert(answer.body->end(), bytes, bytes + count);
  return count;
}

// The value of the header `name`, or nothing where the line is another one.
std::optional<std::string> header_value(std::string_view line,
                                        std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':' ||
      strncasecmp(line.data(), name.data(), name.size()) != 0)
    return std::nullopt;
  std::string value(line.substr(name.size() + 1));
  // RFC 9110, 5.5: so an ETag cannot bring lines into our next request.
  std::ranges::replace_if(
      value, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  value.erase(0, value.find_first_not_of(' '));
  value.erase(value.find_last_not_of(' ') + 1);
  return value;
}

size_t on_header(char* data, size_t, size_t count, void* user) {
  const std::string_view line(data, count);
  auto& answer = *static_cast<Answer*>(user);
  if (auto range = header_value(line, "content-range"))
    answer.content_range = std::move(*range);
  if (auto etag = header_value(line, "etag")) answer.etag = std::move(*etag);
  // With S3's keys ("AES256") the ETag stays an MD5.
  if (const auto by = header_value(line, "x-amz-server-side-encryption"))
    answer.is_encrypted |= by->starts_with("aws:");
  return count;
}

// Called about once a second, also while nothing comes; anything but 0 ends the
// transfer.
int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(user)->stop_requested() ? 1 : 0;
}

using Handle = std::unique_ptr<CURL, void (*)(CURL*)>;
using Connections = std::unique_ptr<CURLSH, void (*)(CURLSH*)>;

// Without locks: they are one thread's.
Connections new_connections() {
  Connections kept(curl_share_init(),
                   [](CURLSH* share) { curl_share_cleanup(share); });
  for (const auto data :
       {CURL_LOCK_DATA_CONNECT, CURL_LOCK_DATA_DNS, CURL_LOCK_DATA_SSL_SESSION})
    if (kept) curl_share_setopt(kept.get(), CURLSHOPT_SHARE, data);
  return kept;
}

// Null where libcurl cannot be started.
Handle new_handle() {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  Handle handle(ready ? curl_easy_init() : nullptr, curl_easy_cleanup);
  thread_local const Connections connections = new_connections();
  if (handle) curl_easy_setopt(handle.get(), CURLOPT_SHARE, connections.get());
  return handle;
}

}  // namespace

HttpResponse http_exchange(const HttpRequest& request,
                           std::vector<std::byte>& body) {
  body.clear();
  const Handle handle = new_handle();
  CURL* curl = handle.get();
  if (curl == nullptr) return {0, "libcurl cannot be started", {}};
  Answer answer{&body, request.max_bytes};
  curl_slist* headers = nullptr;
  for (const auto& [name, value] : request.headers)
    headers = curl_slist_append(headers, (name + ": " + value).c_str());
  // Not every server answers "Expect: 100-continue", which libcurl waits for.
  headers = curl_slist_append(headers, "Expect:");
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> owner(
      headers, curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);  // keys may hold ".."
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    // Null would mean that a callback gives the body.
    const auto* content = reinterpret_cast<const char*>(request.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
                     request.body.empty() ? "" : content);
  }
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(1e3 * request.timeout_s));
  // Slower than that for so long is a stall. (Bytes that drip would else hold
  // a request for days.)
  constexpr long kSlowest = 1024;  // bytes a second
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowest);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                   std::max(1L, static_cast<long>(request.timeout_s)));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(1e3 * request.total_s));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &request.stop);
  if (request.past_proxies) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  char text[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
  const CURLcode rc = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  const bool cut_error_page = answer.too_long && status >= 300;
  if (answer.too_long && !cut_error_page)
    return {0, "more bytes than asked for", {}, true};
  if (rc == CURLE_OUT_OF_MEMORY)  // how libcurl refuses a line of 100 KB too
    return {0, "a header of the answer is too long, or memory ran out", {}};
  if (rc != CURLE_OK && !cut_error_page)
    return {0, text[0] != '\0' ? text : curl_easy_strerror(rc), {}};
  // libcurl takes "HTTP/2 0" for an answer.
  if (status < 100) return {0, "the answer has no HTTP status", {}};
  return {static_cast<int>(status),        {},
          std::move(answer.content_range), false,
          std::move(answer.etag),          answer.is_encrypted};
}

}  // namespace chexnet
