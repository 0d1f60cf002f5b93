// PNG files put together chunk by chunk, also such as no encoder would write.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace chexnet {

inline void put32(std::vector<std::byte>& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<std::byte>(value >> shift));
}

inline void put_chunk(std::vector<std::byte>& out, const char* type,
                      std::span<const uint8_t> body) {
  put32(out, static_cast<uint32_t>(body.size()));
  const size_t start = out.size();
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(type[i]));
  for (const auto b : body) out.push_back(static_cast<std::byte>(b));
  put32(out, static_cast<uint32_t>(
                 crc32(0, reinterpret_cast<const Bytef*>(&out[start]),
                       static_cast<uInt>(out.size() - start))));
}

inline std::vector<uint8_t> deflated(std::span<const uint8_t> raw) {
  std::vector<uint8_t> packed(compressBound(raw.size()));
  uLongf size = packed.size();
  compress2(packed.data(), &size, raw.data(), raw.size(), 6);
  packed.resize(size);
  return packed;
}

// Signature and IHDR.
inline std::vector<std::byte> png_head(int width, int height, uint8_t depth,
                                       uint8_t color_type) {
  std::vector<std::byte> file;
  for (const char c : std::string_view("\x89PNG\r\n\x1a\n"))
    file.push_back(static_cast<std::byte>(c));
  std::vector<uint8_t> header;
  for (const int value : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<uint8_t>(value >> shift));
  header.insert(header.end(), {depth, color_type, 0, 0, 0});
  put_chunk(file, "IHDR", header);
  return file;
}

}  // namespace chexnet
