// MD5, only to compare with an object store's ETag.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace chexnet {

// 32 lower-case digits; empty where the machine's OpenSSL has no MD5 (FIPS).
std::string md5_hex(std::span<const std::byte> bytes);

}  // namespace chexnet
