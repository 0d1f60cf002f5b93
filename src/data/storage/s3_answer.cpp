// Answers are small and of one known form, so tags are searched and no XML
// parser is linked. What comes is a stranger's text: entities are resolved
// once, lengths are bounded, and all that reaches a message is made printable.
#include "s3_answer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

constexpr size_t kLongestMessage = 300;  // of what a server says
constexpr size_t kLongestEntity = 12;    // "&#x10FFFF;" and some zeros
constexpr std::string_view kListingBegins = "<ListBucketResult";
constexpr size_t kLongestToken = 4096;

// No data set has as many objects, and no server gives as little a page.
constexpr uint64_t kMostObjects = 10'000'000, kMostPages = 100'000;
// Ten million objects of 200 bytes, and at 500 a second.
constexpr uint64_t kMostGiB = 2, kMostHours = 6;
constexpr size_t kLongestValue = 1024;  // S3's limit of keys
// Pages without a key are rare, but happen: a server may look through deleted
// objects.
constexpr int kMostEmptyPages = 100;

std::string_view text_of(std::span<const std::byte> body) {
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

void append_utf8(std::string& text, uint32_t code) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

// The character of "&name;" without its ends; empty when there is no such.
std::optional<uint32_t> character(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, uint32_t>, 5> kNamed = {
      {{"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"amp", '&'}}};
  for (const auto& [known, code] : kNamed)
    if (name == known) return code;
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const bool hexadecimal = name.starts_with('x');
  if (hexadecimal) name.remove_prefix(1);
  uint32_t code = 0;
  const auto end = name.data() + name.size();
  const auto result =
      std::from_chars(name.data(), end, code, hexadecimal ? 16 : 10);
  if (result.ec != std::errc() || result.ptr != end || code > 0x10FFFF)
    return std::nullopt;
  return code;
}

std::string without_entities(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const std::string_view entity = text[at] == '&'
                                        ? text.substr(at + 1, kLongestEntity)
                                        : std::string_view();
    const auto end = entity.find(';');
    const auto code = end == std::string_view::npos
                          ? std::nullopt
                          : character(entity.substr(0, end));
    if (code) {
      append_utf8(plain, *code);
      at += end + 2;  // '&' and ';'
    } else {
      plain += text[at++];
    }
  }
  return plain;
}

std::string first_value(std::span<const std::byte> body,
                        const std::string& tag) {
  const auto values = xml_values(text_of(body), tag);
  return values.empty() ? std::string() : values.front();
}

std::string hint_for(const HttpResponse& response,
                     std::span<const std::byte> body) {
  const std::string code = first_value(body, "Code"),
                    region = first_value(body, "Region");
  if (code == "SignatureDoesNotMatch")
    return "the secret key does not belong to the access key, or "
           "data.s3.region is not the "
           "server's";
  if (code == "InvalidAccessKeyId")
    return "the server does not know this access key: is it another site's? "
           "(environment or "
           "data.s3.profile)";
  if (code == "RequestTimeTooSkewed")
    return "the clock of this machine or of the server is wrong: chronyc "
           "tracking";
  if (code == "ExpiredToken" || code == "InvalidToken")
    return "fetch new credentials";
  if (code == "NoSuchBucket")
    return "no such bucket: check its name and data.s3.endpoint";
  if (code.starts_with("Quota") || code == "EntityTooLarge" ||
      code == "XMinioStorageFull" || response.status == 413 ||
      response.status == 507)
    return "the bucket or the account is full, or takes no such large object: "
           "free space there, or have its quota raised";
  if (!region.empty()) return "set data.s3.region to " + printable(region);
  switch (response.status) {
    case 404:
      return "no such bucket or key: check the path";
    case 401:
    case 403:
      return "access denied: check the credentials (environment or "
             "data.s3.profile) and the "
             "bucket's rights";
    case 301:
    case 307:
    case 400:
      return "check data.s3.region and data.s3.endpoint";
    default:
      return "check data.s3.endpoint";
  }
}

}  // namespace

std::vector<std::string> xml_values(std::string_view xml,
                                    const std::string& tag) {
  std::vector<std::string> values;
  const std::string open = "<" + tag + ">", close = "</" + tag + ">";
  for (size_t at = 0; (at = xml.find(open, at)) != std::string_view::npos;) {
    at += open.size();
    const auto end = xml.find(close, at);
    if (end == std::string_view::npos) break;
    values.push_back(without_entities(xml.substr(at, end - at)));
    at = end;
  }
  return values;
}

S3Listing s3_listing(std::span<const std::byte> body,
                     const std::string& origin) {
  const auto refuse = [&](const char* what) {
    throw DataError(
        "[s3] {}: the listing is not S3's: {}. Hint: check data.s3.endpoint",
        origin, what);
  };
  if (text_of(body).find(kListingBegins) == std::string_view::npos)
    refuse("no ListBucketResult; is there a proxy between?");
  const auto keys = xml_values(text_of(body), "Key"),
             sizes = xml_values(text_of(body), "Size"),
             tags = xml_values(text_of(body), "ETag"),
             times = xml_values(text_of(body), "LastModified");
  if (keys.size() != sizes.size()) refuse("keys without a size");
  for (const auto* values : {&keys, &tags, &times})
    for (const auto& value : *values)
      if (value.size() > kLongestValue)
        refuse("it holds a text of more than 1024 bytes");
  S3Listing listing;
  listing.bytes = body.size();
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto size = parsed_number<uint64_t>(sizes[i]);
    if (!size) refuse("a size is no number");
    const auto of_object = [&](const std::vector<std::string>& values) {
      return values.size() == keys.size() ? values[i] : std::string();
    };
    listing.objects.push_back({.path = keys[i],
                               .size = *size,
                               .version = of_object(tags),
                               .modified = of_object(times)});
  }
  listing.next_token = first_value(body, "NextContinuationToken");
  if (listing.next_token.size() > kLongestToken)
    refuse("a token of the next page is too long");
  if (listing.next_token.empty() && first_value(body, "IsTruncated") == "true")
    refuse("more is said to follow, and not how to ask for it");
  return listing;
}

std::string cut_listing(std::span<const std::byte> body) {
  const std::string_view text = text_of(body);
  const bool is_cut =
      text.find(kListingBegins) != std::string_view::npos &&
      text.find("</ListBucketResult>") == std::string_view::npos;
  return is_cut ? "the listing is cut off" : "";
}

void ListingEnd::check(const S3Listing& page, const std::string& origin) {
  const auto refuse = [&](const std::string& what) {
    throw DataError(
        "[s3] {}: the listing never ends: {}. Hint: check data.s3.endpoint",
        origin, what);
  };
  objects_ += page.objects.size();
  if (objects_ > kMostObjects)
    refuse(formatted("more than {} objects", kMostObjects));
  bytes_ += page.bytes;
  if (bytes_ > kMostGiB << 30) refuse(formatted("more than {} GiB", kMostGiB));
  if (page.next_token.empty()) return;

  constexpr double kHour_s = 3600;
  if (now_s_() - begun_s_ > kHour_s * static_cast<double>(kMostHours))
    refuse(formatted("more than {} hours", kMostHours));
  empty_pages_ = page.objects.empty() ? empty_pages_ + 1 : 0;
  if (empty_pages_ > kMostEmptyPages)
    refuse(formatted("{} pages without an object", empty_pages_));
  if (!tokens_.insert(page.next_token).second)
    refuse("it begins again and again");
  if (tokens_.size() > kMostPages)
    refuse(formatted("more than {} pages", kMostPages));
}

std::string s3_reason(const HttpResponse& response,
                      std::span<const std::byte> body) {
  if (response.status == 0) return response.failure;
  std::string text = "HTTP " + std::to_string(response.status);
  const std::string code = first_value(body, "Code"),
                    message = first_value(body, "Message");
  if (!code.empty()) text += " " + printable(code.substr(0, kLongestMessage));
  if (!message.empty())
    text += ": " + printable(message.substr(0, kLongestMessage));
  while (text.ends_with('.')) text.pop_back();  // ours follows
  return text;
}

void throw_refused(const std::string& path, const HttpResponse& response,
                   std::span<const std::byte> body,
                   const std::string& unsigned_because) {
  const std::string text = "[s3] " + path + ": " + s3_reason(response, body);
  if (!unsigned_because.empty())
    throw AbsentError(
        "{}. The request went unsigned: {}. Hint: set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or data.s3.profile",
        text, unsigned_because);
  throw AbsentError("{}. Hint: {}", text, hint_for(response, body));
}

}  // namespace chexnet
