#include "chexnet/core/safetensors.hpp"

#include <cstring>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

std::vector<std::byte> file_of(const std::string& header, size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

}  // namespace

TEST_CASE("what is written as safetensors is read back") {
  const ScratchFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const int64_t count = 7;
  write_safetensors(
      folder / "w.safetensors",
      {{"b", ElementType::kF32, {2, 3}, std::as_bytes(std::span(values))},
       {"a", ElementType::kI64, {}, std::as_bytes(std::span(&count, 1))}},
      {{"k", "v"}});
  const SafetensorsFile file(folder / "w.safetensors");
  REQUIRE(file.arrays().size() == 2);
  REQUIRE(file.find("b") != nullptr);
  CHECK(file.find("b")->shape == std::vector<int64_t>{2, 3});
  CHECK(std::memcmp(file.find("b")->data.data(), values.data(), 24) == 0);
  CHECK(std::memcmp(file.find("a")->data.data(), &count, 8) == 0);
  CHECK(file.metadata().at("k") == "v");
  CHECK(file.find("c") == nullptr);
}

TEST_CASE("a broken safetensors file is refused with its name") {
  const auto tensor = [](const std::string& name, int begin, int end) {
    return "\"" + name +
           "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  struct Case {
    std::string header;
    size_t data;
    const char* reason;
  };
  const std::vector<Case> cases = {
      {"[]", 0, "does not start with '{'"},
      {"{\"a\":", 0, "not valid"},
      {"{" + tensor("a", 0, 4) + "," + tensor("a", 4, 8) + "}", 8, "twice"},
      {"{" + tensor("a", 0, 4) + "," + tensor("b", 8, 12) + "}", 12, "hole"},
      {"{" + tensor("a", 0, 4) + "," + tensor("b", 0, 4) + "}", 4,
       "hole or an overlap"},
      {"{" + tensor("a", 0, 8) + "}", 8, "does not fit"},
      {"{" + tensor("a", 0, 4) + "}", 8, "data bytes"},
      {"{" + tensor("a", 4, 8) + "}", 4, "does not fit"},
      {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
       "unknown type"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905,4],\"data_"
       "offsets\":[0,4]}}",
       4, "impossible shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4,
       "not a whole number"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,4]}}",
       4, "not a whole number"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.5]}}", 4,
       "not a whole number"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
       "impossible shape"}};
  for (const auto& c : cases) {
    const std::string text = error_of<CheckpointError>([&] {
      SafetensorsFile("named.safetensors", file_of(c.header, c.data));
    });
    INFO(c.header << " -> " << text);
    CHECK(text.find(c.reason) != std::string::npos);
    CHECK(text.find("named.safetensors") != std::string::npos);
  }
  auto lying = file_of("{}", 0);
  lying[5] = std::byte{1};  // header length beyond the file
  CHECK(error_of<CheckpointError>([&] {
          SafetensorsFile("x", lying);
        }).find("impossible") != std::string::npos);
  CHECK(error_of<CheckpointError>([&] {
          SafetensorsFile("x", std::vector<std::byte>(4));
        }).find("too short") != std::string::npos);
}

TEST_CASE(
    "a safetensors header of nothing but brackets or numbers is refused") {
  const auto refusal = [](const std::string& header) {
    return error_of<CheckpointError>(
        [&] { SafetensorsFile("x", file_of(header, 0)); });
  };
  CHECK(refusal(R"({"a":)" + std::string(100'000, '['))
            .find("nested more than 8 deep") != std::string::npos);
  std::string numbers = R"({"a":[0)";
  for (int i = 0; i < 1'100'000; ++i) numbers += ",0";
  CHECK(refusal(numbers + "]}").find("more than 1000000 values") !=
        std::string::npos);
  CHECK(refusal(R"({"__metadata__":{"chexnet":")" + std::string(100'000, '[') +
                "\"}}")
            .find("metadata 'chexnet': it is nested more than 32 deep") !=
        std::string::npos);
  CHECK(refusal("{" + std::string(8'000'000, ' ') + "}")
            .find("header length 8000002 is impossible") != std::string::npos);
}

TEST_CASE("a hole of a terabyte is refused before memory is taken for it") {
  const ScratchFolder folder;
  const std::string path = folder.write("hole.safetensors", "{}");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  CHECK(error_of<CheckpointError>([&] {
          SafetensorsFile{path};
        }).find("has 1099511627776 bytes, more than any network here") !=
        std::string::npos);
}
