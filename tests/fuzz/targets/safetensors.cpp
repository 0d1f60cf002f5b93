// safetensors files: what is taken covers the data exactly.
#include "chexnet/core/safetensors.hpp"

#include <cstring>

#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  accepted<CheckpointError>([&] {
    const SafetensorsFile file("x.safetensors", {bytes.begin(), bytes.end()});
    size_t covered = 0;
    for (const auto& array : file.arrays()) {
      size_t count = element_bytes(array.type);
      for (const auto extent : array.shape)
        count *= static_cast<size_t>(extent);
      require(count == array.data.size(), "an array has its shape's bytes");
      require(file.find(array.name) == &array, "an array is found by its name");
      covered += count;
    }
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    require(covered == bytes.size() - 8 - header, "the data is covered");
  });
}

// The length becomes that of the braces.
void mend(std::vector<std::byte>& bytes) {
  uint64_t depth = 0;
  bool quoted = false;
  for (size_t i = 8; i < bytes.size(); ++i) {
    const char c = static_cast<char>(bytes[i]);
    if (c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{') ++depth;
    if (c != '}' || depth == 0 || --depth > 0) continue;
    const uint64_t length = i + 1 - 8;
    std::memcpy(bytes.data(), &length, 8);
    return;
  }
}

std::vector<std::string> seeds() {
  const auto file = [](const std::string& header, size_t data) {
    auto bytes = bytes_of(std::string(8, '\0') + header);
    mend(bytes);
    return text_of(bytes) + std::string(data, 'x');
  };
  return {file(R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[2,3],)"
               R"("data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[2],)"
               R"("data_offsets":[24,28]}})",
               28),
          file(R"({"w":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", 8),
          file(R"({"w":{"dtype":"U8","shape":[0,7],"data_offsets":[0,0]}})", 0),
          file(R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[2,10]},)"
               R"("v":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})",
               10),
          file("{}", 0)};
}

const Registered kTarget{{"safetensors", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
