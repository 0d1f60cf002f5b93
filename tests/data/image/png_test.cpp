// The fast PNG path against libpng, bit for bit.
#include <png.h>
#include <zlib.h>

#include <csetjmp>
#include <cstring>
#include <filesystem>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/resize.hpp"
#include "data/image/inflate.hpp"
#include "data/image/unfilter.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/png_parts.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

using Pixels = std::vector<uint8_t>;

struct Source {
  std::span<const std::byte> bytes;
  size_t at = 0;
};

// libpng's gray; empty when the file is not 8-bit gray.
Pixels by_libpng(std::span<const std::byte> bytes) {
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Source source{bytes};
  png_set_read_fn(png, &source,
                  [](png_structp p, png_bytep into, size_t count) {
                    auto& from = *static_cast<Source*>(png_get_io_ptr(p));
                    std::memcpy(into, &from.bytes[from.at], count);
                    from.at += count;
                  });
  png_read_info(png, info);
  Pixels pixels;
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY &&
      png_get_bit_depth(png, info) == 8) {
    const size_t width = png_get_image_width(png, info);
    const int passes = png_set_interlace_handling(png);
    pixels.resize(width * png_get_image_height(png, info));
    for (int pass = 0; pass < passes; ++pass)
      for (size_t at = 0; at < pixels.size(); at += width)
        png_read_row(png, &pixels[at], nullptr);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return pixels;
}

struct Made {
  std::vector<std::byte> file;
  Pixels lines;  // filter byte + filtered pixels of each row
};

// A PNG of random residuals under `filters(y)`; whatever they decode to is the
// picture.
Made make_png(int width, int height, Random& random,
              int (*filter)(Random&, int), int part_size, int extra_bytes = 0) {
  Made made;
  for (int y = 0; y < height; ++y) {
    made.lines.push_back(static_cast<uint8_t>(filter(random, y)));
    // Else residuals as small as an X-ray's.
    const bool wild = random.chance(0.3);
    for (int x = 0; x < width; ++x)
      made.lines.push_back(
          static_cast<uint8_t>(wild ? random.below(256) : random.below(9) - 4));
  }
  Pixels raw = made.lines;
  raw.resize(raw.size() + static_cast<size_t>(extra_bytes));
  const Pixels packed = deflated(raw);
  made.file = png_head(width, height, 8, 0);
  for (size_t at = 0; at < packed.size(); at += static_cast<size_t>(part_size))
    put_chunk(
        made.file, "IDAT",
        std::span(packed).subspan(
            at, std::min(packed.size() - at, static_cast<size_t>(part_size))));
  put_chunk(made.file, "IEND", {});
  return made;
}

Pixels ours(std::span<const std::byte> file) {
  GrayImage image;
  decode_image(file, {}, "made.png", image);
  return image.contiguous();
}

const std::vector<std::pair<int, int>> kSizes = {
    {1, 1},      {1, 200},   {200, 1},   {2, 127},  {15, 16},
    {16, 17},    {17, 31},   {31, 33},   {63, 64},  {64, 65},
    {65, 127},   {127, 128}, {129, 129}, {255, 3},  {300, 257},
    {1023, 130}, {511, 63},  {33, 300},  {1024, 1}, {640, 96}};

}  // namespace

TEST_CASE(
    "every unfilter kernel gives the same pixels for every mix of filters and "
    "odd sizes") {
  const auto kernels = unfilter_kernels();
  REQUIRE(std::string(kernels.back().name) == "plain");
  Random random(7, Purpose::kTest, 1);
  for (const auto& [width, height] : kSizes) {
    for (int mix = 0; mix < 7; ++mix) {
      Pixels memory(2 * kUnfilterRoom);
      for (int y = 0; y < height; ++y) {
        const uint32_t filter =
            mix < 5 ? static_cast<uint32_t>(mix) : random.below(5);
        memory.insert(memory.end() - kUnfilterRoom,
                      static_cast<uint8_t>(filter));
        for (int x = 0; x < width; ++x)
          memory.insert(memory.end() - kUnfilterRoom,
                        static_cast<uint8_t>(mix == 6 ? random.below(7) - 3
                                                      : random.below(256)));
      }
      GrayImage wanted, got;
      wanted.reset(width, height);
      unfilter(kernels.back(), &memory[kUnfilterRoom], wanted);
      for (const auto& kernel : kernels) {
        got.reset(width, height);
        unfilter(kernel, &memory[kUnfilterRoom], got);
        INFO(kernel.name << " " << width << " x " << height << " mix " << mix);
        CHECK(got.contiguous() == wanted.contiguous());
      }
    }
  }
}

TEST_CASE("random PNGs decode as in libpng, whatever their chunks") {
  Random random(7, Purpose::kTest, 2);
  const auto any = [](Random& r, int) { return static_cast<int>(r.below(5)); };
  const auto paeth = [](Random&, int) { return 4; };
  for (const auto& [width, height] : kSizes) {
    for (const int part : {1 << 30, 8192, 7}) {
      INFO(width << " x " << height << " parts of " << part);
      const auto mixed = make_png(width, height, random, any, part);
      CHECK(ours(mixed.file) == by_libpng(mixed.file));
      const auto pure = make_png(width, height, random, paeth, part);
      CHECK(ours(pure.file) == by_libpng(pure.file));
    }
  }
}

TEST_CASE("decoding and shrinking in one pass equals one after the other") {
  Random random(7, Purpose::kTest, 5);
  const auto any = [](Random& r, int) { return static_cast<int>(r.below(5)); };
  for (const auto& [width, height, size] : {std::tuple{1024, 1024, 256},
                                            {300, 257, 64},
                                            {129, 500, 32},
                                            {64, 64, 64},
                                            {40, 200, 64},
                                            {200, 64, 64},
                                            {17, 31, 8},
                                            {640, 96, 100}}) {
    const auto made = make_png(width, height, random, any, 8192);
    for (const auto kind : {ResizeKind::kAntialias, ResizeKind::kArea}) {
      GrayImage whole, scratch;
      Pixels wanted(static_cast<size_t>(size) * static_cast<size_t>(size)),
          got = wanted;
      decode_image(made.file, {}, "x", whole);
      resize(whole, {0, 0, width, height}, size, kind, wanted.data());
      decode_resized(made.file, {}, "x", size, kind, scratch, got.data());
      INFO(width << " x " << height << " -> " << size);
      CHECK(got == wanted);
    }
  }
}

TEST_CASE("a PNG's damage is named even where its CRC was mended") {
  Random random(7, Purpose::kTest, 3);
  const auto paeth = [](Random&, int) { return 4; };
  const auto refused = [](const std::vector<std::byte>& file) {
    return error_of<DataError>([&] { ours(file); });
  };
  const auto good = make_png(40, 30, random, paeth, 1 << 30);
  // The IDAT chunk starts at 33: length, type, then the zlib stream, whose
  // Adler-32 is its end.
  const auto mended = [&](size_t at_from_end) {
    auto file = good.file;
    const size_t end = file.size() - 12 - 4;  // of the zlib stream
    file[end - at_from_end] ^= std::byte{1};
    const auto body = std::span(file).subspan(33 + 4, end - 33 - 4);
    std::vector<std::byte> crc;
    put32(crc, crc32_of(body));
    std::copy(crc.begin(), crc.end(),
              file.begin() + static_cast<ptrdiff_t>(end));
    return file;
  };
  CHECK(refused(good.file).empty());
  CHECK(refused(mended(1)).find("compressed data is invalid") !=
        std::string::npos);  // Adler-32
  CHECK(refused(mended(200)).find("damaged PNG") != std::string::npos);
  // Rows missing, an unknown filter; surplus data is tolerated, as in libpng.
  const auto bad_filter = [](Random&, int y) { return y == 5 ? 5 : 4; };
  CHECK(refused(make_png(40, 30, random, bad_filter, 1 << 30).file)
            .find("unknown row filter") != std::string::npos);
  const auto surplus = make_png(40, 30, random, paeth, 1 << 30, 100);
  CHECK(ours(surplus.file).size() == 40 * 30);
  auto taller = good.file;  // says 31 rows
  taller[23] = std::byte{31};
  std::vector<std::byte> crc;
  put32(crc, crc32_of(std::span(taller).subspan(12, 17)));
  std::copy(crc.begin(), crc.end(), taller.begin() + 29);
  CHECK(refused(taller).find("rows are missing") != std::string::npos);
}

TEST_CASE("every gray PNG of the X-ray set decodes as in libpng",
          "[arithmetic]") {
  const auto xray = xray_folder();
  if (xray.empty()) return;
  int compared = 0;
  for (const char* folder :
       {"nih1024_raw", "nih352/images", "odd", "odd_derived"}) {
    for (const auto& entry : fs::directory_iterator(xray / folder)) {
      const std::string name = entry.path().filename();
      if (entry.path().extension() != ".png" || name.starts_with("truncated") ||
          name.starts_with("badcrc") || name == "empty.png" ||
          name == "html.png" || name.starts_with("webp") ||
          name.starts_with("jpeg_"))
        continue;
      std::vector<std::byte> bytes;
      read_bytes(entry.path(), bytes);
      const Pixels wanted = by_libpng(bytes);
      if (wanted.empty()) continue;
      INFO(entry.path());
      CHECK(ours(bytes) == wanted);
      ++compared;
    }
  }
  CHECK(compared > 1100);
}

TEST_CASE("a PNG is turned upright by its eXIf chunk") {
  // One entry, the orientation.
  const auto exif = [](uint8_t orientation, bool little) {
    return little
               ? Pixels{'I', 'I', 42, 0, 8, 0,           0, 0, 1, 0, 0x12, 1, 3,
                        0,   1,   0,  0, 0, orientation, 0, 0, 0, 0, 0,    0, 0}
               : Pixels{'M', 'M',         0,    42, 0, 0, 0, 8, 0,
                        1,   1,           0x12, 0,  3, 0, 0, 0, 1,
                        0,   orientation, 0,    0,  0, 0, 0, 0};
  };
  const auto file_with = [&](const Pixels& exif_body, bool in_front,
                             const Pixels& lines, int width, int height) {
    auto file = png_head(width, height, 8, 0);
    if (in_front) put_chunk(file, "eXIf", exif_body);
    put_chunk(file, "IDAT", deflated(lines));
    if (!in_front) put_chunk(file, "eXIf", exif_body);
    put_chunk(file, "IEND", {});
    return file;
  };
  const Pixels lines = {0, 'a', 'b', 'c', 0, 'd', 'e', 'f'};
  const std::vector<std::pair<int, std::string>> upright = {
      {3, "abcdef"}, {3, "cbafed"}, {3, "fedcba"}, {3, "defabc"},
      {2, "adbecf"}, {2, "daebfc"}, {2, "fcebda"}, {2, "cfbead"}};
  for (size_t i = 0; i < upright.size(); ++i) {
    CAPTURE(i);
    const auto& [width, wanted] = upright[i];
    const auto o = static_cast<uint8_t>(i + 1);
    for (const bool little : {true, false}) {
      GrayImage image;
      decode_image(file_with(exif(o, little), little, lines, 3, 2), {}, "x.png",
                   image);
      CHECK(image.width() == width);
      CHECK(image.contiguous() == Pixels(wanted.begin(), wanted.end()));
    }
  }
  CHECK(ours(file_with(exif(9, true), true, lines, 3, 2)) ==
        Pixels({'a', 'b', 'c', 'd', 'e', 'f'}));

  Random random(7, Purpose::kTest, 12);
  Pixels large;
  for (int y = 0; y < 40; ++y) {
    large.push_back(0);
    for (int x = 0; x < 50; ++x)
      large.push_back(static_cast<uint8_t>(random.below(256)));
  }
  const auto turned = file_with(exif(6, true), true, large, 50, 40);
  GrayImage image;
  decode_image(turned, {}, "x.png", image);
  constexpr int kSize = 16;
  Pixels wanted(kSize * kSize), got(kSize * kSize);
  resize(image, {0, 0, 40, 50}, kSize, ResizeKind::kAntialias, wanted.data());
  decode_resized(turned, {}, "x.png", kSize, ResizeKind::kAntialias, image,
                 got.data());
  CHECK(got == wanted);
}
