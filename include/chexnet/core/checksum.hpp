// SHA-256 (OpenSSL) for files and identities, CRC32C (Castagnoli) for
// TFRecords, packs and TensorBoard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace chexnet {

// Incremental SHA-256. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) {
    update(std::as_bytes(std::span(text.data(), text.size())));
  }
  std::string hex();  // 64 lower-case digits; ends the object

 private:
  void* context_;
};

// Two lower-case digits a byte.
std::string hex_text(std::span<const std::byte> bytes);
// The bytes that hex_text() wrote.
std::string bytes_of_hex(std::string_view digits);

std::string sha256_hex(std::string_view text);
std::string hmac_sha256(std::string_view key,
                        std::string_view text);  // 32 bytes, not hex
// AbsentError, OutageError.
std::string sha256_file(const std::filesystem::path& path);

// `before`: the sum of what precedes these bytes.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace chexnet
