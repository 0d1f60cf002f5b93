// Answers of S3 servers: listings of several makers, and refusals that say what
// to do.
#include "data/storage/s3_answer.hpp"

#include "chexnet/core/error.hpp"
#include "chexnet/data/storage/s3_store.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string refusal_text(int status, const std::string& body,
                         const std::string& unsigned_because = "") {
  return error_of<AbsentError>([&] {
    throw_refused("s3://b/x", {status, {}, {}}, bytes_of(body),
                  unsigned_because);
  });
}

std::string error_xml(const std::string& code, const std::string& more = "") {
  return "<Error><Code>" + code + "</Code><Message>Said the server.</Message>" +
         more + "</Error>";
}

}  // namespace

TEST_CASE("keys are read with every way of writing a character") {
  const auto keys = xml_values(
      "<Key>O&#39;Brien &#34;x&#34;</Key><Key>a&#xA;b &amp;lt; "
      "&lt;</Key><Key>&#228;&#x1F600;</Key>"
      "<Key>M&M &nonsense; &#x; &#x110000;</Key>",
      "Key");
  CHECK(keys == std::vector<std::string>{"O'Brien \"x\"", "a\nb &lt; <", "ä😀",
                                         "M&M &nonsense; &#x; &#x110000;"});
}

TEST_CASE("a key of millions of '&' is read in one go") {
  const std::string many(3'000'000, '&');
  CHECK(xml_values("<Key>" + many + ";</Key>", "Key") ==
        std::vector<std::string>{many + ";"});
}

TEST_CASE("a listing comes to an end") {
  const auto page = [](size_t objects, const std::string& token) {
    return S3Listing{std::vector<StoredFile>(objects), token};
  };
  const auto refused = [](ListingEnd& end, const S3Listing& last) {
    return error_of<DataError>([&] { end.check(last, "s3://b/x"); });
  };
  ListingEnd alternating;
  alternating.check(page(1, "a"), "s3://b/x");
  alternating.check(page(1, "b"), "s3://b/x");
  CHECK(refused(alternating, page(1, "a"))
            .find("[s3] s3://b/x: the listing never ends: it") == 0);
  ListingEnd empty;
  for (int i = 0; i < 100; ++i)
    empty.check(page(0, std::to_string(i)), "s3://b/x");
  CHECK(refused(empty, page(0, "more")).find("101 pages without an object") !=
        std::string::npos);
  ListingEnd large;
  S3Listing full = page(100'000, "");
  for (int i = 0; i < 100; ++i) {
    full.next_token = std::to_string(i);
    large.check(full, "s3://b/x");
  }
  CHECK(refused(large, page(1, "")).find("more than 10000000 objects") !=
        std::string::npos);
  ListingEnd heavy;
  S3Listing of_a_gib = page(1, "");
  of_a_gib.bytes = uint64_t{1} << 30;
  for (int i = 0; i < 2; ++i) heavy.check(of_a_gib, "s3://b/x");
  CHECK(refused(heavy, of_a_gib).find("more than 2 GiB") != std::string::npos);
  ListingEnd whole;
  whole.check(page(2, "a"), "s3://b/x");
  whole.check(page(0, ""), "s3://b/x");
}

TEST_CASE("a listing that is none is refused") {
  const S3Listing page =
      s3_listing(bytes_of("<ListBucketResult><Key>a</Key><Size>12</Size>"
                          "<NextContinuationToken>t</NextContinuationToken>"),
                 "s3://b");
  CHECK((page.objects.size() == 1 && page.objects[0].size == 12 &&
         page.next_token == "t"));
  for (const char* body :
       {"<Key>a</Key><Size>many</Size>", "<Key>a</Key><Size>-1</Size>",
        "<Key>a</Key><Size></Size>", "<Key>a</Key>"})
    CHECK(error_of<DataError>([&] {
            s3_listing(bytes_of("<ListBucketResult>" + std::string(body)),
                       "s3://b");
          }).find("the listing is not S3's") != std::string::npos);
}

TEST_CASE("a refusal repeats the server's words and says what to do") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refusal_text(403, error_xml("SignatureDoesNotMatch")),
      "HTTP 403 SignatureDoesNotMatch: Said the server. Hint: the secret key");
  has(refusal_text(403, error_xml("InvalidAccessKeyId")),
      "does not know this access key");
  has(refusal_text(403, error_xml("RequestTimeTooSkewed")), "clock");
  has(refusal_text(400, error_xml("AuthorizationHeaderMalformed",
                                  "<Region>eu-west-3</Region>")),
      "set data.s3.region to eu-west-3");
  has(refusal_text(404, error_xml("NoSuchBucket")), "no such bucket");
  has(refusal_text(403, ""), "HTTP 403. Hint: access denied");
  has(refusal_text(412, "", "no credentials found (looked at X)"),
      "The request went unsigned: no credentials found (looked at X). Hint: "
      "set AWS_ACCESS_KEY_ID");
}

TEST_CASE("a bucket's name is a name") {
  const auto store =
      s3_store({}, [](const char*) -> const char* { return nullptr; });
  std::vector<std::byte> bytes;
  for (const char* path :
       {"s3://evil.example#/x", "s3://a@b/x", "s3://a:80/x", "s3://.x/y",
        "s3://-a/y", "s3://a..b/y", "s3://a.-b/y", "s3://a-.b/y", "s3://a-/y"})
    CHECK(error_of<ConfigError>([&] {
            store->read_whole(path, bytes);
          }).find("is no name of a bucket") != std::string::npos);
}
