// The markers of a plain gray JPEG: those that TurboJPEG reads as well, in
// their common forms. Anything else is not plain.
//
//   FFD8 | FFDB quantization… | FFC0 frame | FFC4 Huffman codes… | FFDA scan
//        | bytes, where FF is stuffed: FF00 | FFD9
#include <cstring>
#include <vector>

#include "jpeg_scan.hpp"

namespace chexnet {
namespace {

constexpr unsigned kFrame = 0xC0, kCodes = 0xC4, kStart = 0xD8, kEnd = 0xD9,
                   kScanHeader = 0xDA, kQuantization = 0xDB, kComment = 0xFE,
                   kApplication = 0xE0;

struct PlainJpeg {
  int width = 0, height = 0;
  unsigned component = 0, quantization_table = 0;
  std::array<std::array<uint16_t, 64>, 4> quantization{};  // in zigzag order
  std::array<bool, 4> has_quantization{};
  std::array<std::array<JpegCode, 4>, 2> codes;  // [AC][table]
  std::array<std::array<bool, 4>, 2> has_code{};
};

// The body of a marker, read from its front; 0 after its end.
class Body {
 public:
  explicit Body(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool is_empty() const { return bytes_.empty(); }
  bool has(size_t count) const { return bytes_.size() >= count; }
  unsigned u8() {
    if (bytes_.empty()) return 0;
    const auto value = std::to_integer<unsigned>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return value;
  }
  unsigned u16() {
    const unsigned high = u8();
    return high << 8 | u8();
  }

 private:
  std::span<const std::byte> bytes_;
};

bool read_quantization(Body body, PlainJpeg& jpeg) {
  while (!body.is_empty()) {
    const unsigned table = body.u8();  // above 3: of 16 bits
    if (table > 3 || !body.has(64)) return false;
    for (auto& step : jpeg.quantization[table])
      step = static_cast<uint16_t>(body.u8());
    jpeg.has_quantization[table] = true;
  }
  return true;
}

bool read_codes(Body body, PlainJpeg& jpeg) {
  while (!body.is_empty()) {
    const unsigned which = body.u8(), table = which & 15, is_ac = which >> 4;
    if (table > 3 || is_ac > 1 || !body.has(16)) return false;
    JpegCode code;
    size_t number = 0;
    for (auto& count : code.counts)
      number += count = static_cast<uint8_t>(body.u8());
    if (number > code.symbols.size() || !body.has(number)) return false;
    for (size_t k = 0; k < number; ++k)
      code.symbols[k] = static_cast<uint8_t>(body.u8());
    jpeg.codes[is_ac][table] = code;
    jpeg.has_code[is_ac][table] = true;
  }
  return true;
}

bool read_frame(Body body, PlainJpeg& jpeg) {
  if (jpeg.width > 0 || !body.has(9) || body.u8() != 8) return false;
  jpeg.height = static_cast<int>(body.u16());
  jpeg.width = static_cast<int>(body.u16());
  const unsigned components = body.u8();
  jpeg.component = body.u8();
  const unsigned sampling = body.u8();
  jpeg.quantization_table = body.u8();
  return components == 1 && sampling == 0x11 && jpeg.width > 0 &&
         jpeg.height > 0 && jpeg.quantization_table < 4 && body.is_empty();
}

// Of the one scan that a plain file has: its tables' numbers.
bool read_scan_header(Body body, const PlainJpeg& jpeg, unsigned& tables) {
  const unsigned components = body.u8(), component = body.u8();
  tables = body.u8();
  const unsigned first = body.u8(), last = body.u8(), bits = body.u8();
  return jpeg.width > 0 && components == 1 && component == jpeg.component &&
         first == 0 && last == 63 && bits == 0 && body.is_empty();
}

// A JFIF marker of another version than 1 is a warning of TurboJPEG's.
bool is_plain_application(std::span<const std::byte> body) {
  return body.size() < 14 || std::memcmp(body.data(), "JFIF", 5) != 0 ||
         body[5] == std::byte{1};
}

// The scan's bytes without the zeros after FF. False: it has another marker
// than the end, or none.
bool unstuff(std::span<const std::byte> bytes, std::vector<uint8_t>& into) {
  into.resize(bytes.size() + kScanRoom);
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = from + bytes.size();
  uint8_t* to = into.data();
  while (const auto* mark = static_cast<const uint8_t*>(
             std::memchr(from, 0xFF, static_cast<size_t>(end - from)))) {
    const auto length = static_cast<size_t>(mark - from);
    std::memcpy(to, from, length);
    to += length;
    if (mark + 1 == end) return false;
    if (mark[1] != 0) {
      into.resize(static_cast<size_t>(to - into.data()) + kScanRoom);
      std::memset(&into[into.size() - kScanRoom], 0, kScanRoom);
      return mark[1] == kEnd;
    }
    *to++ = 0xFF;
    from = mark + 2;
  }
  return false;
}

// The parts before the scan. `scan` begins after its header.
bool read_markers(std::span<const std::byte> bytes, PlainJpeg& jpeg,
                  unsigned& tables, std::span<const std::byte>& scan) {
  const auto at = [&](size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  if (bytes.size() < 4 || at(0) != 0xFF || at(1) != kStart) return false;
  for (size_t p = 2; p + 4 <= bytes.size() && at(p) == 0xFF;) {
    const unsigned marker = at(p + 1);
    const size_t length = at(p + 2) << 8 | at(p + 3);
    if (length < 2 || length > bytes.size() - p - 2) return false;
    const auto content = bytes.subspan(p + 4, length - 2);
    const Body body(content);
    p += 2 + length;
    bool is_plain = marker == kComment || ((marker & 0xF0) == kApplication &&
                                           is_plain_application(content));
    if (marker == kQuantization) is_plain = read_quantization(body, jpeg);
    if (marker == kCodes) is_plain = read_codes(body, jpeg);
    if (marker == kFrame) is_plain = read_frame(body, jpeg);
    if (marker == kScanHeader) {
      scan = bytes.subspan(p);
      return read_scan_header(body, jpeg, tables);
    }
    if (!is_plain) return false;
  }
  return false;
}

}  // namespace

std::span<const JpegScanDecoder> jpeg_scan_decoders() {
  static const std::vector<JpegScanDecoder> decoders = [] {
    std::vector<JpegScanDecoder> all;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
      all.push_back(decode_jpeg_scan_avx2);
#endif
    all.push_back(decode_jpeg_scan_plain);
    return all;
  }();
  return decoders;
}

bool decode_gray_jpeg(std::span<const std::byte> bytes, int side,
                      JpegScanDecoder decoder, GrayImage& into) {
  PlainJpeg jpeg;
  unsigned which = 0;
  std::span<const std::byte> stuffed;
  if (!read_markers(bytes, jpeg, which, stuffed)) return false;
  const unsigned dc = which >> 4, ac = which & 15;
  if (dc > 3 || ac > 3 || !jpeg.has_code[0][dc] || !jpeg.has_code[1][ac] ||
      !jpeg.has_quantization[jpeg.quantization_table])
    return false;
  thread_local std::vector<uint8_t> unstuffed;
  if (!unstuff(stuffed, unstuffed)) return false;
  thread_local JpegTables tables;
  if (!tables.assign(jpeg.codes[0][dc], jpeg.codes[1][ac])) return false;
  JpegScan scan{
      .bytes = std::span(unstuffed).first(unstuffed.size() - kScanRoom),
      .blocks_wide = (jpeg.width + 7) / 8,
      .blocks_high = (jpeg.height + 7) / 8,
      .side = side};
  for (size_t k = 0; k < 64; ++k)
    scan.quantization[kZigzag[k]] =
        jpeg.quantization[jpeg.quantization_table][k];
  into.reset((jpeg.width * side + 7) / 8, (jpeg.height * side + 7) / 8);
  return decoder(tables, scan, into);
}

}  // namespace chexnet
