#include "chexnet/core/md5.hpp"

#include <openssl/evp.h>

#include <array>

#include "chexnet/core/checksum.hpp"

namespace chexnet {

std::string md5_hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), sum.data(), &length, EVP_md5(),
                 nullptr) != 1)
    return {};
  return hex_text(std::as_bytes(std::span(sum.data(), length)));
}

}  // namespace chexnet
