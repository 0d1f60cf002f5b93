// AWS Signature Version 4 in its three steps: the canonical request, the string
// to sign (its hash within date, region and service), and a signature by a key
// that is derived for just that scope.
#include "chexnet/data/storage/sigv4.hpp"

#include <algorithm>
#include <span>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"

namespace chexnet {
std::string uri_encode(const std::string& text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                       c == '_' || c == '~' || (keep_slash && c == '/');
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string canonical_query(
    std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = uri_encode(name, false);
    value = uri_encode(value, false);
  }
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query)
    text += (text.empty() ? "" : "&") + name + "=" + value;
  return text;
}

std::string authorization(const SignedRequest& request,
                          const Credentials& credentials,
                          const std::string& region, const std::string& service,
                          const std::string& time) {
  std::string headers, names;
  for (const auto& [name, value] : request.headers) {
    headers += name + ":" + std::string(trimmed(value)) + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical =
      request.method + "\n" + uri_encode(request.path, true) + "\n" +
      canonical_query(request.query) + "\n" + headers + "\n" + names + "\n" +
      request.body_sha256;
  const std::string date = time.substr(0, 8);
  const std::string scope =
      date + "/" + region + "/" + service + "/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256_hex(canonical);
  std::string key = "AWS4" + credentials.secret_key;
  for (const std::string& part :
       {date, region, service, std::string("aws4_request")})
    key = hmac_sha256(key, part);
  const std::string signature = hmac_sha256(key, to_sign);
  return "AWS4-HMAC-SHA256 Credential=" + credentials.access_key + "/" + scope +
         ",SignedHeaders=" + names +
         ",Signature=" + hex_text(std::as_bytes(std::span(signature)));
}

}  // namespace chexnet
