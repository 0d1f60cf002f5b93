// Signatures of requests: encodings can be undone, queries are sorted, and the
// header that comes out is one line of known form.
#include "chexnet/data/storage/sigv4.hpp"

#include <algorithm>

#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

std::string decoded(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      require(i + 2 < text.size(), "an escape has two digits");
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

void run(Bytes bytes) {
  const std::string whole = text_of(bytes);
  for (const bool keep_slash : {false, true}) {
    const std::string encoded = uri_encode(whole, keep_slash);
    require(decoded(encoded) == whole, "an encoding can be undone");
    for (const char c : encoded)
      require(c > ' ' && c < '\x7f' && c != '&' && c != '=' &&
                  (keep_slash || c != '/'),
              "nothing is left that a URL takes for itself");
  }

  Reader fields(bytes);
  SignedRequest request;
  request.method = "GET";
  request.path = "/" + fields.until('\0');
  request.headers["host"] = fields.until('\0');
  request.headers["x-amz-date"] = "20130524T000000Z";
  request.body_sha256 = "UNSIGNED-PAYLOAD";
  const Credentials keys{"id", fields.until('\0'), ""};
  while (!fields.rest().empty()) {
    std::string name = fields.until('\0');
    request.query.emplace_back(std::move(name), fields.until('\0'));
  }
  const std::string query = canonical_query(request.query);
  auto turned = request.query;
  std::ranges::reverse(turned);
  require(canonical_query(turned) == query,
          "the order of a query is no matter");
  const std::string value =
      authorization(request, keys, "us-east-1", "s3", "20130524T000000Z");
  require(value.starts_with("AWS4-HMAC-SHA256 Credential=id/20130524/"),
          "the header names its scope");
  require(value.size() >= 64 && value.find('\n') == std::string::npos,
          "the header is a line with a signature");
  request.query = turned;
  require(authorization(request, keys, "us-east-1", "s3", "20130524T000000Z") ==
              value,
          "nor is it to the signature");
}

std::vector<std::string> seeds() {
  return {raw("test.txt\0bucket.s3.amazonaws.com\0secret\0a\0b\0"),
          "a b/\xC3\xA4+%25~*.png",
          raw("x\0h\0k\0prefix\0J\0max-keys\0"
              "2\0")};
}

const Registered kTarget{{"sigv4", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
