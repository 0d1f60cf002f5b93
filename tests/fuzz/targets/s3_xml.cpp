// What an S3 server says in XML: listings and refusals.
#include "data/storage/s3_answer.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

bool is_printable(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') return false;
  return true;
}

void run(Bytes bytes) {
  S3Listing page;
  ListingEnd end;
  if (accepted<DataError>([&] { page = s3_listing(bytes, "s3://b/x"); }))
    accepted<DataError>([&] {
      end.check(page, "s3://b/x");
      end.check(page, "s3://b/x");
      require(page.next_token.empty(), "no token comes twice");
    });
  for (const int status : {0, 301, 400, 403, 404, 500}) {
    const HttpResponse response{status, "no connection", {}};
    const std::string reason = s3_reason(response, bytes);
    require(is_printable(reason), "what a server says cannot move a terminal");
    require(reason.size() < 3000, "nor fill it");
    for (const char* unsigned_because : {"", "no credentials"})
      accepted<AbsentError>([&] {
        throw_refused("s3://b/x", response, bytes, unsigned_because);
      });
  }
}

std::vector<std::string> seeds() {
  const std::string object =
      "<Contents><Key>a/1&amp;&#x27;.png</Key><ETag>&quot;e&quot;</ETag>"
      "<Size>12</Size></Contents>";
  return {"<ListBucketResult>" + object + object +
              "<NextContinuationToken>t&#39;</NextContinuationToken>"
              "</ListBucketResult>",
          "<Error><Code>SignatureDoesNotMatch</Code><Message>No.</Message>"
          "<Region>eu-west-1</Region></Error>",
          "<Error><Code>ExpiredToken</Code></Error>",
          "<Error><Code>NoSuchBucket</Code></Error>",
          "<Error><Code>RequestTimeTooSkewed</Code></Error>",
          "<Error><Code>InvalidAccessKeyId</Code></Error>",
          "<Key>&#xFFFF;&#x1F600;&#1234;&lt;&nothing;</Key><Size>1</Size>"};
}

const Registered kTarget{{"s3_xml", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
