// TurboJPEG also reads every file here: where our decoder takes it, the pixels
// are equal, on every instruction set of this processor.
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/data/image/decode.hpp"
#include "data/image/jpeg_scan.hpp"
#include "support/catch.hpp"

using namespace chexnet;

namespace {

using File = std::vector<std::byte>;

struct Picture {
  int width, height;
  std::vector<uint8_t> pixels;
};

// From one gray to noise that needs every coefficient.
Picture picture(int width, int height, int noise, Random& random) {
  Picture made{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int smooth = 100 + (x * 3 + y * 2) % 97;
      const int by =
          static_cast<int>(random.below(static_cast<uint32_t>(2 * noise + 1)));
      made.pixels.push_back(
          static_cast<uint8_t>(std::clamp(smooth + by - noise, 0, 255)));
    }
  return made;
}

File encoded(const Picture& from, int quality, int flags = 0) {
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitCompress(),
                                                     tjDestroy);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(handle.get(), from.pixels.data(), from.width, 0,
                      from.height, TJPF_GRAY, &out, &size, TJSAMP_GRAY, quality,
                      flags) == 0);
  const auto bytes = std::as_bytes(std::span(out, size));
  File file(bytes.begin(), bytes.end());
  tjFree(out);
  return file;
}

// TurboJPEG's pixels at side/8; empty where it refuses.
std::vector<uint8_t> theirs(const File& file, int side, int& width) {
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitDecompress(),
                                                     tjDestroy);
  const auto* data = reinterpret_cast<const unsigned char*>(file.data());
  int height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(handle.get(), data, file.size(), &width, &height,
                          &sampling, &colors) != 0)
    return {};
  width = (width * side + 7) / 8;
  height = (height * side + 7) / 8;
  std::vector<uint8_t> pixels(static_cast<size_t>(width) *
                              static_cast<size_t>(height));
  if (tjDecompress2(handle.get(), data, file.size(), pixels.data(), width,
                    width, height, TJPF_GRAY,
                    TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0)
    return {};
  return pixels;
}

// How many of the decoders and sizes took the file; all pixels are TurboJPEG's.
int taken(const File& file) {
  int number = 0;
  for (const int side : {1, 2, 4}) {
    int width = 0;
    const auto wanted = theirs(file, side, width);
    for (const auto decoder : jpeg_scan_decoders()) {
      GrayImage ours;
      if (!decode_gray_jpeg(file, side, decoder, ours)) continue;
      ++number;
      if (ours.width() != width || ours.contiguous() != wanted)
        FAIL("other pixels than TurboJPEG's");
    }
  }
  return number;
}

int all() { return 3 * static_cast<int>(jpeg_scan_decoders().size()); }

// An environment variable by which TurboJPEG's compressor takes options that
// its interface lacks.
class Option {
 public:
  Option(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
  }
  ~Option() { unsetenv(name_); }
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("plain gray JPEGs: TurboJPEG's pixels", "[jpeg]") {
  Random random(10, Purpose::kTest, 5);
  for (const bool own_codes : {false, true}) {
    const Option option("TJ_OPTIMIZE", own_codes ? "1" : "0");
    for (const int quality : {1, 7, 30, 50, 75, 90, 95, 98, 100})
      for (const int noise : {0, 3, 40, 255}) {
        INFO(quality << " " << noise << " " << own_codes);
        CHECK(taken(encoded(picture(264, 72, noise, random), quality)) ==
              all());
      }
    for (int side = 1; side < 20; ++side) {
      INFO(side);
      CHECK(taken(encoded(picture(side, 20 - side, 60, random), 92)) == all());
    }
  }
  CHECK(taken(encoded(picture(3000, 9, 60, random), 92)) == all());
}

TEST_CASE("the end of a scan is where TurboJPEG finds it", "[jpeg]") {
  Random random(10, Purpose::kTest, 6);
  // Of each length modulo 8 in bits.
  for (int height = 1; height < 80; ++height)
    CHECK(taken(encoded(picture(9, height, 255, random), 100)) == all());
  File file = encoded(picture(40, 40, 60, random), 90);
  file.insert(file.end() - 2, std::byte{0x55});
  CHECK(taken(file) == 0);  // TurboJPEG: extraneous bytes
  file = encoded(picture(40, 40, 60, random), 90);
  file.insert(file.end(), 100, std::byte{0x55});
  CHECK(taken(file) == all());  // after the end mark
}

TEST_CASE("what is no plain gray JPEG is left to TurboJPEG", "[jpeg]") {
  Random random(10, Purpose::kTest, 7);
  const Picture from = picture(96, 64, 30, random);
  const File plain = encoded(from, 90);
  CHECK(taken(plain) == all());
  CHECK(taken(encoded(from, 90, TJFLAG_PROGRESSIVE)) == 0);
  {
    const Option option("TJ_RESTART", "1");
    CHECK(taken(encoded(from, 90)) == 0);
  }
  for (size_t size = 0; size < plain.size(); ++size)
    if (taken({plain.begin(), plain.begin() + static_cast<ptrdiff_t>(size)}) !=
        0)
      FAIL("taken without its end: " << size);
}

TEST_CASE("mutated JPEGs have TurboJPEG's pixels, or are left to it",
          "[jpeg]") {
  const char* text = std::getenv("CHEXNET_MUTATIONS");
  const int mutations = text != nullptr ? std::atoi(text) : 2'000;
  Random random(10, Purpose::kTest, 8);
  std::vector<File> files;
  for (const int quality : {40, 90, 100})
    for (const int noise : {2, 50})
      files.push_back(encoded(picture(72, 40, noise, random), quality));
  int number = 0;
  for (int k = 0; k < mutations; ++k) {
    File file = files[static_cast<size_t>(k) % files.size()];
    for (uint32_t changes = random.below(3) + 1; changes > 0; --changes) {
      const auto at = random.below(static_cast<uint32_t>(file.size()));
      file[at] ^= static_cast<std::byte>(1u << random.below(8));
    }
    number += taken(file) > 0 ? 1 : 0;
  }
  CHECK(number > mutations / 20);
  CHECK(number < mutations);
}

TEST_CASE("a JPEG is scaled as its promise says, upright", "[jpeg]") {
  Random random(10, Purpose::kTest, 9);
  const File file = encoded(picture(330, 250, 20, random), 90);
  GrayImage image;
  decode_image(file, {.min_side = 60}, "x.jpg", image);
  CHECK((image.width() == 83 && image.height() == 63));  // 1/4
  int width = 0;
  CHECK(image.contiguous() == theirs(file, 2, width));
  // APP1 with one entry, the orientation: 6, of a little-endian TIFF.
  constexpr std::string_view kTurned(
      "\xFF\xE1\x00\x22"
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
      36);
  File turned = file;
  for (size_t k = 0; k < kTurned.size(); ++k)
    turned.insert(turned.begin() + 2 + static_cast<ptrdiff_t>(k),
                  static_cast<std::byte>(kTurned[k]));
  decode_image(turned, {.min_side = 60}, "x.jpg", image);
  CHECK((image.width() == 63 && image.height() == 83));
}

TEST_CASE("a JPEG without tables does not get those of the file before",
          "[jpeg]") {
  Random random(11, Purpose::kTest, 9);
  const File file = encoded(picture(64, 48, 20, random), 90);
  // Without its segment of quantization tables.
  constexpr std::array kTables{std::byte{0xFF}, std::byte{0xDB}};
  File without = file;
  const auto at = std::ranges::search(without, kTables).begin();
  REQUIRE(at != without.end());
  const int length =
      std::to_integer<int>(at[2]) << 8 | std::to_integer<int>(at[3]);
  without.erase(at, at + 2 + length);
  GrayImage image;
  CHECK_THROWS_AS(decode_image(without, {}, "x.jpg", image), DataError);
  decode_image(file, {}, "x.jpg", image);
  CHECK_THROWS_AS(decode_image(without, {}, "x.jpg", image), DataError);
}
