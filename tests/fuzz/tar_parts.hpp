// tar archives put together block by block.
#pragma once

#include <cstdio>
#include <cstring>

#include "chexnet/data/storage/entry.hpp"
#include "target.hpp"

namespace chexnet::fuzz {

inline constexpr size_t kTarBlock = 512;

// The field counts as blanks in its sum.
inline void mend_tar_header(std::byte* header) {
  std::memset(header + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i)
    sum += std::to_integer<unsigned>(header[i]);
  char text[9];
  std::snprintf(text, sizeof text, "%06o", sum);
  std::memcpy(header + 148, text, 7);
}

// Every block that says so is taken for a header; contents seldom do.
inline void mend_tar(std::vector<std::byte>& bytes) {
  for (size_t at = 0; at + kTarBlock <= bytes.size(); at += kTarBlock)
    if (std::memcmp(&bytes[at + 257], "ustar", 5) == 0)
      mend_tar_header(&bytes[at]);
}

inline std::string tar_member(const std::string& name, char type,
                              const std::string& content) {
  std::string header(kTarBlock, '\0');
  header.replace(0, name.size(), name);
  char size[13];
  std::snprintf(size, sizeof size, "%011o",
                static_cast<unsigned>(content.size()));
  header.replace(124, 11, size, 11);
  header[156] = type;
  header.replace(257, 5, "ustar");
  mend_tar_header(reinterpret_cast<std::byte*>(header.data()));
  const size_t pad = (kTarBlock - content.size() % kTarBlock) % kTarBlock;
  return header + content + std::string(pad, '\0');
}

inline std::vector<std::string> tar_seeds() {
  const std::string end(2 * kTarBlock, '\0');
  const std::string picture = tar_member("images/1.png", '0', "12345");
  return {picture + tar_member("2.png", '0', std::string(700, 'x')) + end,
          tar_member("././@LongLink", 'L', "a/long/name.png") + picture + end,
          tar_member("pax", 'x', "22 path=other/one.png\n11 size=3\n") +
              picture + end,
          tar_member("folder", '5', "") + picture + end,
          tar_member("pax_global", 'g', "12 a=bcdefg\n") + picture + end};
}

inline bool is_possible_tar(const Entry& e, uint64_t size) {
  return e.offset <= size && e.length <= size - e.offset && e.skip <= e.offset;
}

}  // namespace chexnet::fuzz
