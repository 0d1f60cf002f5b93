// AWS's published examples: the aws-sig-v4-test-suite and "Signature
// Calculations for the Authorization Header" of the Amazon S3 API reference.
#include "chexnet/data/storage/sigv4.hpp"

#include "chexnet/core/checksum.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

std::string signature(const std::string& header) {
  return header.substr(header.rfind('=') + 1);
}

SignedRequest suite_request() {
  SignedRequest r;
  r.headers = {{"host", "example.amazonaws.com"},
               {"x-amz-date", "20150830T123600Z"}};
  r.body_sha256 = sha256_hex("");
  return r;
}

std::string suite(const SignedRequest& r) {
  return signature(authorization(
      r, {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""},
      "us-east-1", "service", "20150830T123600Z"));
}

std::string s3(SignedRequest r) {
  r.headers["host"] = "examplebucket.s3.amazonaws.com";
  r.headers["x-amz-date"] = "20130524T000000Z";
  r.headers["x-amz-content-sha256"] = r.body_sha256;
  return signature(authorization(
      r,
      {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
      "us-east-1", "s3", "20130524T000000Z"));
}

}  // namespace

TEST_CASE("signatures equal AWS's test suite") {
  CHECK(suite(suite_request()) ==
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  SignedRequest r = suite_request();
  r.method = "POST";
  CHECK(suite(r) ==
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  r = suite_request();
  r.query = {{"Param2", "value2"}, {"Param1", "value1"}};
  CHECK(suite(r) ==
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  r = suite_request();
  r.query = {{"Param1", "value1"}};
  CHECK(suite(r) ==
        "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb");
  r = suite_request();
  r.path = "/\u1234";
  CHECK(suite(r) ==
        "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  r = suite_request();
  const std::string unreserved =
      "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  r.path = "/" + unreserved;
  CHECK(suite(r) ==
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f");
  r = suite_request();
  r.query = {{unreserved, unreserved}};
  CHECK(suite(r) ==
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197");
}

TEST_CASE("signatures equal the examples of the S3 reference") {
  SignedRequest r;
  r.body_sha256 = sha256_hex("");
  r.path = "/test.txt";
  r.headers["range"] = "bytes=0-9";
  CHECK(s3(r) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  r = {};
  r.body_sha256 = sha256_hex("");
  r.query = {{"lifecycle", ""}};
  CHECK(s3(r) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  r.query = {{"max-keys", "2"}, {"prefix", "J"}};
  CHECK(s3(r) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  r = {};
  r.method = "PUT";
  r.path = "/test$file.text";
  r.body_sha256 = sha256_hex("Welcome to Amazon S3.");
  r.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  r.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  CHECK(s3(r) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}
