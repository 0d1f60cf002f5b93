// Packs, read as from an object store and mapped: both ways give the same.
#include "chexnet/data/pack.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "chexnet/core/checksum.hpp"
#include "data/pack_layout.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

// The pixels of the first images, a damaged image as none; nothing where the
// pack is refused.
std::optional<std::vector<std::string>> images_of(const std::string& path,
                                                  Bytes bytes) {
  MemoryStore store(bytes);
  std::vector<std::byte> scratch;
  std::vector<std::string> images;
  const bool taken = accepted<DataError>([&] {
    const PackReader reader(path, store);
    const PackShape& shape = reader.shape();
    const auto side = static_cast<size_t>(shape.side);
    for (uint64_t i = 0; i < shape.names.size() && i < 20; ++i) {
      images.emplace_back();
      accepted<DataError>([&] {
        images.back() = text_of(reader.pixels(i, scratch));
        require(images.back().size() == side * side, "an image has its pixels");
      });
    }
  });
  return taken ? std::optional(images) : std::nullopt;
}

void run(Bytes bytes) {
  static MemoryFile file;
  const auto stored = images_of("s3://b/x.pack", bytes);
  // One that is cut off after its table is not mapped at all.
  const auto mapped = images_of(file.holding(bytes), bytes);
  require(!mapped || mapped == stored,
          "a pack that is mapped is what it is in a store");
}

uint32_t sum_of(Bytes bytes, uint64_t from, uint64_t count) {
  from = std::min<uint64_t>(from, bytes.size());
  return crc32c(bytes.subspan(from, std::min(count, bytes.size() - from)));
}

// The header's checksum, and where the header is JSON those of names and table
// in it.
void mend(std::vector<std::byte>& bytes) {
  if (bytes.size() < kPackPage) return;
  uint32_t length = 0;
  std::memcpy(&length, &bytes[8], 4);
  length = std::min<uint32_t>(length, kPackPage - kPackHead);
  auto* text = reinterpret_cast<char*>(&bytes[kPackHead]);
  auto json = nlohmann::json::parse(text, text + length, nullptr, false);
  if (json.is_object() && json.contains("names_bytes") &&
      json["names_bytes"].is_number_unsigned() && json.contains("images") &&
      json["images"].is_number_unsigned()) {
    const uint64_t names = json["names_bytes"], images = json["images"];
    const uint64_t table = (kPackPage + names % (1u << 30) + 63) / 64 * 64;
    json["names_crc32c"] = sum_of(bytes, kPackPage, names);
    json["table_crc32c"] =
        sum_of(bytes, table, images % (1u << 30) * sizeof(PackEntry));
    const std::string again =
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (again.size() <= kPackPage - kPackHead) {
      std::ranges::copy(again, text);
      length = static_cast<uint32_t>(again.size());
    }
  }
  std::memcpy(&bytes[8], &length, 4);
  const uint32_t crc = crc32c(std::span(bytes).subspan(kPackHead, length));
  std::memcpy(&bytes[12], &crc, 4);
}

std::vector<std::string> seeds() {
  std::string file(kPackMagic);
  const nlohmann::json header = {{"images", 2},
                                 {"names_bytes", 12},
                                 {"names_crc32c", 0},
                                 {"table_crc32c", 0},
                                 {"side", 8},
                                 {"resize_kind", "antialias"},
                                 {"jpeg_scale", "never"},
                                 {"source_sha256", "ab"}};
  const std::string text = header.dump();
  const auto length = static_cast<uint32_t>(text.size());
  file.append(reinterpret_cast<const char*>(&length), 4);
  file += "    " + text;
  file.resize(kPackPage);
  file += "a.png\nb.png\n";
  file.resize(kPackPage + 64);
  const std::vector<uint8_t> pixels(64);
  const PackEntry good{crc32c(std::as_bytes(std::span(pixels))), 5, 9,
                       kPackDone};
  const PackEntry bad{0, 0, 0, kPackDamaged};
  for (const auto& entry : {good, bad})
    file.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  file.resize(3 * kPackPage);
  auto bytes = bytes_of(file);
  mend(bytes);
  return {text_of(bytes)};
}

const Registered kTarget{{"pack", run, mend, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
