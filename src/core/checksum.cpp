// SHA-256 and HMAC by OpenSSL. CRC-32C by ISA-L where the build found it, else
// by a table of the reflected polynomial 0x82F63B78: a sum over a whole equals
// one continued from piece to piece, as `before` takes off the final inversion
// that every call puts on.
#include "chexnet/core/checksum.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>
#ifdef CHEXNET_WITH_ISAL
#include <isa-l/crc.h>
#endif

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <vector>

#include "chexnet/core/read_file.hpp"

namespace chexnet {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr);
}
Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }
void Sha256::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(),
                   bytes.size());
}
std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest.data(),
                     nullptr);
  return hex_text(std::as_bytes(std::span(digest)));
}

std::string hex_text(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte >> 4)];
    text += kDigits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

std::string bytes_of_hex(std::string_view digits) {
  assert(digits.size() % 2 == 0);
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return bytes;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string digest(32, '\0');
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

std::string sha256_hex(std::string_view text) {
  Sha256 sum;
  sum.update(text);
  return sum.hex();
}

std::string sha256_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_unreadable("checksum", path.string(), errno);
  Sha256 sum;
  std::vector<std::byte> piece(1 << 20);
  uint64_t at = 0;
  for (;;) {
    const auto count = read_at(fd, at, piece);
    if (count <= 0) {
      const int error = errno;
      ::close(fd);
      if (count < 0) throw_unreadable("checksum", path.string(), error);
      return sum.hex();
    }
    sum.update(std::span(piece).first(static_cast<size_t>(count)));
    at += static_cast<uint64_t>(count);
  }
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#ifdef CHEXNET_WITH_ISAL
  uint32_t crc = ~before;
  while (!bytes.empty()) {  // its length is an int
    const auto part = bytes.first(std::min<size_t>(bytes.size(), 1 << 30));
    crc = crc32_iscsi(const_cast<unsigned char*>(
                          reinterpret_cast<const unsigned char*>(part.data())),
                      static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  return ~crc;
#else
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k)
        c = (c >> 1) ^ (c & 1 ? 0x82F63B78u : 0u);  // reflected polynomial
      t[i] = c;
    }
    return t;
  }();
  uint32_t crc = ~before;
  for (const std::byte b : bytes)
    crc = table[(crc ^ static_cast<uint32_t>(b)) & 0xFF] ^ (crc >> 8);
  return ~crc;
#endif
}

}  // namespace chexnet
