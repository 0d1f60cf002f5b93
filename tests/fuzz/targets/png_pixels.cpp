// Sound PNG files of every kind, made of the input: our pixels against
// libspng's, and every unfilter kernel against the plain one, bit for bit.
//
//   input   width, height, depth and color, interlace, size of IDATs, level
//           | the filtered lines, repeated as often as they are needed
#include <spng.h>
#include <zlib.h>

#include <cstring>
#include <memory>

#include "data/image/inflate.hpp"
#include "data/image/unfilter.hpp"
#include "fuzz/image_checks.hpp"
#include "support/png_parts.hpp"

namespace chexnet::fuzz {
namespace {

struct Kind {
  uint8_t depth, color;
  int channels;
};
constexpr Kind kKinds[] = {{8, 0, 1}, {8, 0, 1},  {8, 0, 1}, {8, 0, 1},
                           {1, 0, 1}, {2, 0, 1},  {4, 0, 1}, {16, 0, 1},
                           {8, 2, 3}, {16, 2, 3}, {8, 3, 1}, {4, 3, 1},
                           {8, 4, 2}, {16, 4, 2}, {8, 6, 4}, {16, 6, 4}};

// One pass of Adam7, or the whole picture.
struct Pass {
  int x0, y0, dx, dy;
};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8},
                           {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2},
                           {0, 1, 1, 2}};

struct Made {
  int width, height;
  Kind kind;
  bool interlaced;
  std::vector<uint8_t> lines;
  std::vector<std::byte> file;
};

void put_lines(Made& made, const Pass& pass, Bytes from, size_t& used) {
  const int width = (made.width - pass.x0 + pass.dx - 1) / pass.dx;
  const int height = (made.height - pass.y0 + pass.dy - 1) / pass.dy;
  if (width <= 0 || height <= 0) return;
  const int bits = width * made.kind.channels * made.kind.depth;
  const auto next = [&] {
    if (from.empty()) return uint8_t{0};
    return std::to_integer<uint8_t>(from[used++ % from.size()]);
  };
  for (int y = 0; y < height; ++y) {
    made.lines.push_back(next() % 5);
    for (int x = 0; x < (bits + 7) / 8; ++x) made.lines.push_back(next());
  }
}

Made make(Bytes bytes) {
  Reader choices(bytes);
  Made made{};
  made.width = choices.side(300);
  made.height = choices.side(300);
  made.kind = kKinds[choices.byte() % std::size(kKinds)];
  made.interlaced = choices.byte() % 4 == 1;
  const int part = choices.number(1, 65535), level = choices.byte() % 4;
  size_t used = 0;
  if (made.interlaced)
    for (const auto& pass : kAdam7) put_lines(made, pass, choices.rest(), used);
  else
    put_lines(made, {0, 0, 1, 1}, choices.rest(), used);

  std::vector<std::byte>& file = made.file;
  for (const char c : std::string_view("\x89PNG\r\n\x1a\n"))
    file.push_back(static_cast<std::byte>(c));
  std::vector<uint8_t> header;
  for (const int side : {made.width, made.height})
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<uint8_t>(side >> shift));
  header.insert(header.end(), {made.kind.depth, made.kind.color, 0, 0,
                               static_cast<uint8_t>(made.interlaced ? 1 : 0)});
  put_chunk(file, "IHDR", header);
  if (made.kind.color == 3) {
    std::vector<uint8_t> palette;
    for (int i = 0; i < (3 << made.kind.depth); ++i)
      palette.push_back(static_cast<uint8_t>(i * 29));
    put_chunk(file, "PLTE", palette);
  }
  std::vector<uint8_t> packed(compressBound(made.lines.size()));
  uLongf size = packed.size();
  compress2(packed.data(), &size, made.lines.data(), made.lines.size(),
            level * 3);
  packed.resize(size);
  // Few hundred chunks at most, as checking one costs as much as many bytes.
  const auto most = static_cast<size_t>(part) + packed.size() / 200;
  for (size_t at = 0; at < packed.size(); at += most)
    put_chunk(
        file, "IDAT",
        std::span(packed).subspan(at, std::min(most, packed.size() - at)));
  put_chunk(file, "IEND", {});
  return made;
}

// Pillow's L, spelled out once more.
uint8_t gray_of(unsigned r, unsigned g, unsigned b) {
  return static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >>
                              16);
}

// libspng's pixels of the whole file, as gray by its promise in decode.hpp;
// empty when it refuses.
std::vector<uint8_t> by_libspng(const Made& made) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> ctx(spng_ctx_new(0),
                                                           spng_ctx_free);
  spng_set_png_buffer(ctx.get(), made.file.data(), made.file.size());
  const bool is_gray = made.kind.color == 0;
  int format = SPNG_FMT_RGBA8;
  if (is_gray) format = made.kind.depth == 16 ? SPNG_FMT_PNG : SPNG_FMT_G8;
  size_t size = 0;
  if (spng_decoded_image_size(ctx.get(), format, &size) != 0) return {};
  std::vector<uint8_t> raw(size), gray;
  if (spng_decode_image(ctx.get(), raw.data(), size, format, 0) != 0) return {};
  if (format == SPNG_FMT_G8) return raw;
  if (format == SPNG_FMT_PNG) {
    for (size_t i = 0; i + 1 < size; i += 2) {
      uint16_t value = 0;
      std::memcpy(&value, &raw[i], 2);
      gray.push_back(static_cast<uint8_t>((value + 128) / 257));
    }
    return gray;
  }
  for (size_t i = 0; i + 3 < size; i += 4)
    gray.push_back(gray_of(raw[i], raw[i + 1], raw[i + 2]));
  return gray;
}

void compare_kernels(const Made& made) {
  std::vector<uint8_t> memory(2 * kUnfilterRoom);
  memory.insert(memory.begin() + kUnfilterRoom, made.lines.begin(),
                made.lines.end());
  GrayImage wanted, got;
  wanted.reset(made.width, made.height);
  unfilter(unfilter_kernels().back(), &memory[kUnfilterRoom], wanted);
  for (const auto& kernel : unfilter_kernels()) {
    got.reset(made.width, made.height);
    unfilter(kernel, &memory[kUnfilterRoom], got);
    require(got.contiguous() == wanted.contiguous(),
            "every kernel gives the same pixels");
  }
}

void run(Bytes bytes) {
  const Made made = make(bytes);
  check_picture(made.file);
  GrayImage ours;
  const auto theirs = by_libspng(made);
  const bool taken = accepted<DataError>(
      [&] { decode_image(made.file, kSmall, "made.png", ours); });
  require(taken == !theirs.empty(), "both take a file or refuse it");
  if (!taken) return;
  require(ours.contiguous() == theirs, "the pixels are libspng's");
  if (made.kind.depth == 8 && made.kind.color == 0 && !made.interlaced)
    compare_kernels(made);
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (char kind = 0; kind < static_cast<char>(std::size(kKinds)); ++kind)
    for (const char interlace : {'\0', '\1'})
      all.push_back(std::string{0, 40, 8, 0, 30, 8, kind, interlace, 0, 99, 1} +
                    "some bytes \xFF\x80\x01\x04");
  return all;
}

const Registered kTarget{{"png_pixels", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
