// PNG. 8-bit gray without interlace (nearly all of ChestX-ray14) takes the fast
// way: chunks with their CRC, one inflate, the wavefront unfilter. Everything
// else goes through libspng.
//
//   signature | length type body crc | IHDR … | IDAT | IDAT … | IEND
//                                               \_____/
//            one zlib stream: height lines of [filter byte | width pixels]
//
// The whole picture is inflated at once, as a zlib stream has one checksum at
// its end; it is unfiltered and shrunk in bands of kBand rows, which stay in
// the processor's cache. The band's row 0 is the last row of the band above,
// which the filters refer to.
#include <spng.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "formats.hpp"
#include "inflate.hpp"
#include "orientation.hpp"
#include "resize_kernels.hpp"
#include "unfilter.hpp"

namespace chexnet {
namespace {

// Rows that the widest unfilter kernel takes at a time.
constexpr int kBand = 128;
// Bytes that a byte of deflate can become.
constexpr int64_t kMostInflated = 1032;

struct Chunks {
  std::span<const std::byte> header;  // IHDR's 13 bytes
  // Of all IDAT chunks: in the file, or in `joined`
  std::span<const std::byte> data;
  std::vector<std::byte> joined;  // empty while there is one IDAT chunk
  // Whole, without which there are no pixels.
  std::vector<std::span<const std::byte>> critical;
  int orientation = 1;  // of the first eXIf chunk
};

// Memory that a thread keeps from picture to picture.
struct Scratch {
  Chunks chunks;
  std::vector<uint8_t> lines;  // kUnfilterRoom, filtered lines, kUnfilterRoom
  std::vector<std::byte> critical_file;  // for libspng
  std::vector<uint8_t> library_pixels;   // from libspng
  GrayImage band;                        // [kBand + 1] rows
};
Scratch& scratch() {
  thread_local Scratch kept;
  return kept;
}

[[noreturn]] void damaged(const std::string& origin, const std::string& what) {
  decode_failed(origin, "damaged PNG: " + what, "fetch the file again");
}

uint32_t big_endian(const std::byte* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<uint32_t>(at[i]);
  return value;
}

// Every chunk whole, with its CRC, up to IEND. libspng stops reading once it
// has the last row, so damage after it, or a file cut there, would pass.
void read_chunks(std::span<const std::byte> bytes, const std::string& origin,
                 Chunks& chunks) {
  chunks.joined.clear();
  chunks.critical.clear();
  chunks.header = chunks.data = {};
  chunks.orientation = 1;
  bool has_exif = false;
  size_t at = 8;
  for (;;) {
    if (bytes.size() - at < 12) damaged(origin, "the file is cut off");
    const size_t length = big_endian(&bytes[at]);
    if (length > bytes.size() - at - 12) damaged(origin, "the file is cut off");
    const auto type_and_body = bytes.subspan(at + 4, length + 4);
    if (crc32_of(type_and_body) != big_endian(&bytes[at + 8 + length]))
      damaged(origin, "a chunk's CRC is wrong");
    const auto is = [&](const char* type) {
      return std::memcmp(type_and_body.data(), type, 4) == 0;
    };
    if (at == 8 && is("IHDR") && length == 13)
      chunks.header = type_and_body.subspan(4);
    if (is("IDAT") && chunks.data.empty() && chunks.joined.empty()) {
      chunks.data = type_and_body.subspan(4);
    } else if (is("IDAT")) {  // joined while its checksum has it in the cache
      if (chunks.joined.empty())
        chunks.joined.assign(chunks.data.begin(), chunks.data.end());
      chunks.joined.insert(chunks.joined.end(), type_and_body.begin() + 4,
                           type_and_body.end());
    }
    if (is("eXIf") && !has_exif) {
      chunks.orientation = orientation_of(type_and_body.subspan(4));
      has_exif = true;
    }
    if ((type_and_body[0] & std::byte{32}) == std::byte{0})
      chunks.critical.push_back(bytes.subspan(at, length + 12));
    if (is("IEND")) break;
    at += length + 12;
  }
  if (!chunks.joined.empty()) chunks.data = chunks.joined;
  if (chunks.header.empty()) damaged(origin, "it does not start with a header");
}

// The values of a picture's header, once its chunks are known to be whole.
struct Header {
  int width, height;
  bool gray8;  // 8 bits, gray, not interlaced: the fast way
};

Header read_header(const Chunks& chunks, const DecodeLimits& limits,
                   const std::string& origin) {
  const int64_t width = big_endian(chunks.header.data());
  const int64_t height = big_endian(&chunks.header[4]);
  check_size(width, height, limits, origin);
  const auto field = [&](size_t i) {
    return std::to_integer<int>(chunks.header[i]);
  };
  if (width * height * field(8) / 8 > kMostInflated * std::ssize(chunks.data))
    damaged(origin, "rows are missing");
  const int depth = field(8), color = field(9);
  const int compression = field(10), filter = field(11), interlace = field(12);
  const bool gray8 = depth == 8 && color == 0 && compression == 0 &&
                     filter == 0 && interlace == 0;
  return {static_cast<int>(width), static_cast<int>(height), gray8};
}

// The filtered lines of a gray8 picture, kUnfilterRoom around them; null when
// the file has more data than pixels, which libspng tolerates. This thread's,
// until its next call.
const uint8_t* filtered_lines(const Chunks& chunks, const Header& header,
                              const std::string& origin) {
  std::vector<uint8_t>& memory = scratch().lines;
  const size_t line = static_cast<size_t>(header.width) + 1;
  const size_t size = line * static_cast<size_t>(header.height);
  if (memory.size() < size + 2 * kUnfilterRoom)
    memory.resize(size + 2 * kUnfilterRoom);
  uint8_t* lines = &memory[kUnfilterRoom];
  switch (inflate_zlib(chunks.data, {lines, size})) {
    case InflateStatus::kWhole:
      break;
    case InflateStatus::kTooLong:
      return nullptr;
    case InflateStatus::kTooShort:
      damaged(origin, "rows are missing");
    case InflateStatus::kDamaged:
      damaged(origin, "its compressed data is invalid");
  }
  for (size_t at = 0; at < size; at += line)
    if (lines[at] > 4) damaged(origin, "unknown row filter");
  return lines;
}

// libspng sees the critical chunks alone: it would unpack every iCCP, zTXt and
// iTXt, of which a megabyte can become a gigabyte, and none of them changes the
// gray values. (Of eXIf the orientation is read by read_chunks.)
std::span<const std::byte> without_extras(const Chunks& chunks) {
  static constexpr std::string_view kMagic = "\x89PNG\r\n\x1a\n";
  std::vector<std::byte>& file = scratch().critical_file;
  const auto magic = std::as_bytes(std::span(kMagic));
  file.assign(magic.begin(), magic.end());
  for (const auto chunk : chunks.critical)
    file.insert(file.end(), chunk.begin(), chunk.end());
  return file;
}

int library_format(const spng_ihdr& header) {
  if (header.color_type != SPNG_COLOR_TYPE_GRAYSCALE) return SPNG_FMT_RGBA8;
  if (header.bit_depth <= 8) return SPNG_FMT_G8;
  return SPNG_FMT_PNG;  // 16 bits, host byte order
}

// One row of libspng's pixels as gray; returns where the next one begins.
const uint8_t* gray_row(const uint8_t* from, int format, size_t width,
                        uint8_t* row) {
  if (format == SPNG_FMT_G8) {
    std::memcpy(row, from, width);
    return from + width;
  }
  if (format == SPNG_FMT_RGBA8) {
    for (size_t x = 0; x < width; ++x, from += 4)
      row[x] = luma(from[0], from[1], from[2]);
    return from;
  }
  for (size_t x = 0; x < width; ++x, from += 2) {
    uint16_t value = 0;
    std::memcpy(&value, from, 2);
    row[x] = static_cast<uint8_t>((value + 128) / 257);
  }
  return from;
}

// All pixels in `format`, chosen by the header. This thread's, until its next
// call.
const std::vector<uint8_t>& library_pixels(const Chunks& chunks,
                                           const std::string& origin,
                                           int& format) {
  const auto bytes = without_extras(chunks);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> ctx(spng_ctx_new(0),
                                                           spng_ctx_free);
  const auto check = [&](int rc) {
    if (rc != 0) damaged(origin, spng_strerror(rc));
  };
  check(spng_set_crc_action(ctx.get(), SPNG_CRC_USE,
                            SPNG_CRC_USE));  // checked in read_chunks
  check(spng_set_png_buffer(ctx.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(ctx.get(), &header));
  format = library_format(header);
  std::vector<uint8_t>& pixels = scratch().library_pixels;
  size_t bytes_needed = 0;
  check(spng_decoded_image_size(ctx.get(), format, &bytes_needed));
  pixels.resize(bytes_needed);
  check(spng_decode_image(ctx.get(), pixels.data(), bytes_needed, format, 0));
  return pixels;
}

void decode_by_library(const Chunks& chunks, const Header& size,
                       const std::string& origin, GrayImage& into) {
  int format = 0;
  const uint8_t* from = library_pixels(chunks, origin, format).data();
  into.reset(size.width, size.height);
  const auto width = static_cast<size_t>(into.width());
  for (int y = 0; y < into.height(); ++y)
    from = gray_row(from, format, width, into.row(y));
}

}  // namespace

void decode_png(std::span<const std::byte> bytes, const DecodeLimits& limits,
                const std::string& origin, GrayImage& into) {
  Chunks& chunks = scratch().chunks;
  read_chunks(bytes, origin, chunks);
  const Header header = read_header(chunks, limits, origin);
  const uint8_t* lines =
      header.gray8 ? filtered_lines(chunks, header, origin) : nullptr;
  if (lines != nullptr) {
    into.reset(header.width, header.height);
    unfilter(unfilter_kernels().front(), lines, into);
  } else {
    decode_by_library(chunks, header, origin, into);
  }
  turn_upright(chunks.orientation, into);
}

PictureFacts facts_of_png(std::span<const std::byte> bytes,
                          const std::string& origin) {
  constexpr size_t kWidth = 16, kHeight = 20, kColorType = 25, kEnd = 33;
  if (bytes.size() < kEnd) damaged(origin, "the file is cut off");
  PictureFacts facts;
  facts.width = static_cast<int>(big_endian(&bytes[kWidth]));
  facts.height = static_cast<int>(big_endian(&bytes[kHeight]));
  const auto color = std::to_integer<int>(bytes[kColorType]);
  if (color == SPNG_COLOR_TYPE_GRAYSCALE ||
      color == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA)
    return facts;
  Chunks& chunks = scratch().chunks;
  read_chunks(bytes, origin, chunks);
  int format = 0;
  facts.in_color = shows_color(library_pixels(chunks, origin, format));
  return facts;
}

bool decode_png_resized(std::span<const std::byte> bytes,
                        const DecodeLimits& limits, const std::string& origin,
                        int size, uint8_t* into) {
  assert(size > 0);
  Chunks& chunks = scratch().chunks;
  GrayImage& band = scratch().band;
  read_chunks(bytes, origin, chunks);
  const Header header = read_header(chunks, limits, origin);
  if (!header.gray8 || header.width == size || header.height == size ||
      chunks.orientation != 1)
    return false;
  const uint8_t* lines = filtered_lines(chunks, header, origin);
  if (lines == nullptr) return false;
  const auto width = static_cast<size_t>(header.width);
  band.reset(header.width, kBand + 1);
  const uint8_t* above = row_of_zeros(header.width);
  AntialiasRows rows(header.width, header.height, size, into);
  for (int y0 = 0; y0 < header.height; y0 += kBand) {
    const int count = std::min(kBand, header.height - y0);
    unfilter_kernels().front().rows(
        lines + static_cast<size_t>(y0) * (width + 1), band.row(1),
        band.stride(), header.width, count, above);
    for (int y = 1; y <= count; ++y) rows.add(band.row(y));
    std::memcpy(band.row(0), band.row(count), width);
    above = band.row(0);
  }
  return true;
}

}  // namespace chexnet
