// safetensors files: accepted arrays cover the data exactly, a file is read as
// its bytes are, and a written file reads back equal.
#include "chexnet/core/safetensors.hpp"

#include <cstring>

#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void check_round_trip(const SafetensorsFile& file) {
  static const MemoryFolder folder("safetensors");
  const auto path = folder.path() / "x.safetensors";
  write_safetensors(path, file.arrays(), file.metadata());
  const SafetensorsFile again(path);
  require(again.metadata() == file.metadata(), "metadata read back equal");
  require(again.arrays().size() == file.arrays().size(), "all arrays come");
  for (const auto& array : file.arrays()) {
    const auto* found = again.find(array.name);
    require(found != nullptr && found->type == array.type &&
                found->shape == array.shape &&
                std::ranges::equal(found->data, array.data),
            "an array reads back equal");
  }
}

void run(Bytes bytes) {
  static MemoryFile on_disk;
  const std::string path = on_disk.holding(bytes);
  const bool from_path =
      accepted<CheckpointError>([&] { SafetensorsFile{path}; });
  const bool from_bytes = accepted<CheckpointError>([&] {
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
    check_round_trip(file);
  });
  require(from_path == from_bytes, "a file is taken as its bytes are");
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
  return {
      file(R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[2,3],)"
           R"("data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[2],)"
           R"("data_offsets":[24,28]}})",
           28),
      file(R"({"w":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", 8),
      file(R"({"w":{"dtype":"U8","shape":[0,7],"data_offsets":[0,0]}})", 0),
      file(R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[2,10]},)"
           R"("v":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})",
           10),
      file(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8),
      file(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 8),
      file(R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],)"
           R"("data_offsets":[0,0]}})",
           0),
      file(R"({"w":{"dtype":"F64","shape":[4611686018427387904],)"
           R"("data_offsets":[0,0]}})",
           0),
      file(R"({"__metadata__":{"a":null,"b":true,"c":-1,"d":1.5}})", 0),
      file(R"({"w":)" + std::string(100, '[') + std::string(100, ']') + "}", 0),
      file(R"({"w":1,"w":2})", 0),
      file("{}", 0)};
}

const Registered kTarget{{"safetensors", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
