// What an S3 server says in XML: listings, and why it refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "chexnet/core/clock.hpp"
#include "chexnet/data/storage/store.hpp"
#include "http.hpp"

namespace chexnet {

// The text of each <tag>…</tag>, entities resolved (also &#39; and &#x27;).
std::vector<std::string> xml_values(std::string_view xml,
                                    const std::string& tag);

// One page of a ListObjectsV2 answer. DataError naming `origin` when it is
// none.
struct S3Listing {
  std::vector<StoredFile> objects;  // keys as paths
  std::string next_token;           // empty: the last page
  uint64_t bytes = 0;               // of the answer
};
S3Listing s3_listing(std::span<const std::byte> body,
                     const std::string& origin);
// What is wrong with a page that did not come as a whole; else empty.
std::string cut_listing(std::span<const std::byte> body);

// Sees that the pages of one listing come to an end: no token twice, not many
// pages without an object, no more pages, objects and bytes than any data set
// has, and not for hours.
class ListingEnd {
 public:
  explicit ListingEnd(std::function<double()> now_s = chexnet::now_s)
      : now_s_(std::move(now_s)), begun_s_(now_s_()) {}
  void check(const S3Listing& page,
             const std::string& origin);  // DataError naming `origin`

 private:
  std::function<double()> now_s_;
  double begun_s_;
  uint64_t bytes_ = 0;
  std::unordered_set<std::string> tokens_;
  uint64_t objects_ = 0;
  int empty_pages_ = 0;  // in a row
};

// "HTTP 403 SignatureDoesNotMatch: The request signature …", or the
// connection's failure.
std::string s3_reason(const HttpResponse& response,
                      std::span<const std::byte> body);

// Throws AbsentError: what the server said, and what to do about it.
// `unsigned_because` is empty when the request was signed.
[[noreturn]] void throw_refused(const std::string& path,
                                const HttpResponse& response,
                                std::span<const std::byte> body,
                                const std::string& unsigned_because);

}  // namespace chexnet
