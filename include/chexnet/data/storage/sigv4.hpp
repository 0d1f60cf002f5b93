// AWS Signature Version 4 ("Authenticating Requests (AWS Signature Version 4)",
// Amazon S3 API reference). libcurl 7.88 signs keys with special characters
// wrongly and does not sort query parameters, so requests are signed here. Pure
// functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace chexnet {

struct Credentials {
  std::string access_key, secret_key,
      session_token;  // token: empty for long-term keys
};

struct SignedRequest {
  std::string method = "GET";
  // Decoded; S3 paths are encoded once and never normalized.
  std::string path = "/";
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  // Lower-case names; host among them.
  std::map<std::string, std::string> headers;
  std::string body_sha256;  // hex, or UNSIGNED-PAYLOAD
};

// Percent-encoding of RFC 3986: all but letters, digits, '-', '.', '_', '~'
// and, when `keep_slash`,
// '/'.
std::string uri_encode(const std::string& text, bool keep_slash);
// Sorted and encoded, as it is sent and signed.
std::string canonical_query(
    std::vector<std::pair<std::string, std::string>> query);

// The value of the Authorization header. `time`: 20130524T000000Z, also in
// headers["x-amz-date"].
std::string authorization(const SignedRequest& request,
                          const Credentials& credentials,
                          const std::string& region, const std::string& service,
                          const std::string& time);

}  // namespace chexnet
