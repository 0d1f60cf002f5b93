// The last line of an index: the checksum of the lines before it.
#pragma once

#include <array>
#include <cstdio>

#include "chexnet/core/checksum.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

// Makes the sum of the bytes from the last `first_line` on right; without one,
// or without a sum after it, nothing changes.
inline void mend_index_sum(std::vector<std::byte>& bytes,
                           std::string_view first_line) {
  std::string text = text_of(bytes);
  constexpr std::string_view kSum = "crc32c ";
  const auto sum = text.rfind(kSum);
  const auto begin = text.rfind(first_line);
  if (sum == std::string::npos || begin > sum) return;
  text.resize(sum + kSum.size());
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x",
                crc32c(std::as_bytes(std::span(text).subspan(begin))));
  bytes = bytes_of(text + digits.data() + "\n");
}

}  // namespace chexnet::fuzz
