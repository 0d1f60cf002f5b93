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

// By zlib, as the program has its own deflate.
inline uint32_t chunk_crc(std::span<const std::byte> type_and_body) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(type_and_body.data()),
            static_cast<uInt>(type_and_body.size())));
}

inline void put_chunk(std::vector<std::byte>& out, const char* type,
                      std::span<const uint8_t> body) {
  put32(out, static_cast<uint32_t>(body.size()));
  const size_t start = out.size();
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(type[i]));
  for (const auto b : body) out.push_back(static_cast<std::byte>(b));
  put32(out, chunk_crc(std::span(out).subspan(start)));
}

// Every chunk's CRC made right again, so that damage passes its check.
inline void mend_chunks(std::vector<std::byte>& png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i)
      length = length << 8 | std::to_integer<size_t>(png[at + i]);
    if (length > png.size() - at - 12) return;
    const uint32_t crc = chunk_crc(std::span(png).subspan(at + 4, length + 4));
    for (size_t i = 0; i < 4; ++i)
      png[at + 8 + length + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    at += length + 12;
  }
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
