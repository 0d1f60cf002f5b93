#include "chexnet/data/image/decode.hpp"

#include <turbojpeg.h>

#include <cmath>

#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/image/encode.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

GrayImage decoded(const fs::path& path) {
  std::vector<std::byte> bytes;
  read_bytes(path, bytes);
  GrayImage image;
  decode_image(bytes, DecodeLimits{}, path.string(), image);
  return image;
}

double mean(const GrayImage& image) {
  double sum = 0;
  const auto pixels = image.contiguous();
  for (const auto p : pixels) sum += p;
  return sum / static_cast<double>(pixels.size());
}

}  // namespace

TEST_CASE("a gray PNG comes back as it was written") {
  std::vector<uint8_t> pixels(37 * 21);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>(i * 31 % 251);
  GrayImage image;
  decode_image(encode_gray_png(pixels.data(), 37, 21), DecodeLimits{}, "x",
               image);
  CHECK((image.width() == 37 && image.height() == 21));
  CHECK(image.contiguous() == pixels);
  CHECK(error_of<DataError>([&] {
          decode_image(encode_gray_png(pixels.data(), 37, 21), {37 * 21 - 1},
                       "bomb.png", image);
        }).find("bomb.png: is 37 x 21 pixels") != std::string::npos);
}

TEST_CASE("every cut or flipped byte of a PNG is noticed") {
  std::vector<uint8_t> pixels(24 * 24);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>(i * 7 % 256);
  const auto good = encode_gray_png(pixels.data(), 24, 24);
  GrayImage image;
  for (size_t cut = 0; cut < good.size(); cut += 3) {
    const std::vector<std::byte> part(
        good.begin(), good.begin() + static_cast<ptrdiff_t>(cut));
    CHECK_FALSE(error_of<DataError>([&] {
                  decode_image(part, DecodeLimits{}, "cut.png", image);
                }).empty());
  }
  for (size_t at = 8; at < good.size(); at += 3) {
    auto bad = good;
    bad[at] ^= std::byte{0x10};
    INFO("byte " << at);
    CHECK_FALSE(error_of<DataError>([&] {
                  decode_image(bad, DecodeLimits{}, "flip.png", image);
                }).empty());
  }
}

TEST_CASE("what is no PNG or JPEG is named") {
  GrayImage image;
  const auto refused = [&](const std::string& text) {
    return error_of<DataError>([&] {
      decode_image(std::as_bytes(std::span(text.data(), text.size())),
                   DecodeLimits{}, "some.file", image);
    });
  };
  CHECK(refused("").find("some.file: the file is empty") != std::string::npos);
  CHECK(refused("<!doctype html>").find("neither PNG nor JPEG") !=
        std::string::npos);
  CHECK(refused(std::string(128, '\0') + "DICM" + std::string(40, 'x'))
            .find("DICOM") != std::string::npos);
  CHECK(refused("RIFFxxxxWEBPVP8 ").find("WebP") != std::string::npos);
  CHECK(refused("\xFF\xD8\xFF\xE0 no more").find("damaged") !=
        std::string::npos);
}

TEST_CASE("a damaged JPEG does not spoil the next one") {
  const std::vector<unsigned char> pixels(64 * 48, 90);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  const tjhandle codec = tjInitCompress();
  REQUIRE(tjCompress2(codec, pixels.data(), 64, 0, 48, TJPF_GRAY, &memory,
                      &size, TJSAMP_GRAY, 90, 0) == 0);
  const auto file = std::as_bytes(std::span(memory, size));
  const std::vector<std::byte> good(file.begin(), file.end());
  tjFree(memory);
  tjDestroy(codec);
  // After its first two bytes, conditions of arithmetic coding (marker DAC) for
  // a table 255.
  std::vector<std::byte> damaged = good;
  const auto bytes = {std::byte{0xFF}, std::byte{0xCC}, std::byte{0},
                      std::byte{4},    std::byte{255},  std::byte{0}};
  damaged.insert(damaged.begin() + 2, bytes);

  GrayImage image;
  CHECK(error_of<DataError>([&] {
          decode_image(damaged, DecodeLimits{}, "x.jpg", image);
        }).find("damaged JPEG") != std::string::npos);
  decode_image(good, DecodeLimits{}, "y.jpg", image);
  CHECK((image.width() == 64 && image.height() == 48));
  CHECK(mean(image) == Approx(90).margin(1));
}

TEST_CASE(
    "files as found in the wild decode or are refused as their list says") {
  const auto xray = xray_folder();
  if (xray.empty()) return;
  const std::string table = read_text(xray / "odd_derived/FILES.csv");
  CsvReader csv(table, "FILES.csv");
  std::vector<std::string_view> f;
  csv.next(f);
  int seen = 0;
  while (csv.next(f)) {
    ++seen;
    const std::string name(f[0]), original(f[2]), expected(f[3]);
    INFO(name);
    const fs::path path = xray / "odd_derived" / name;
    if (expected.find("error") != std::string::npos &&
        !name.starts_with("cmyk")) {
      CHECK(error_of<DataError>([&] { decoded(path); }).find(name) !=
            std::string::npos);
      continue;
    }
    const GrayImage image = decoded(path),
                    reference = decoded(xray / "nih352/images" / original);
    if (name.starts_with("bit1_")) {
      CHECK(mean(image) == Approx(148.9).margin(0.1));
    } else if (name.starts_with("big_")) {
      CHECK((image.width() == 4280 && image.height() == 3520));
      CHECK(std::abs(mean(image) - mean(reference)) < 2);
    } else {
      const auto pixels = image.contiguous(), wanted = reference.contiguous();
      REQUIRE(pixels.size() == wanted.size());
      double sum = 0;
      int largest = 0;
      for (size_t i = 0; i < pixels.size(); ++i) {
        const int difference = std::abs(pixels[i] - wanted[i]);
        sum += difference;
        largest = std::max(largest, difference);
      }
      const double average = sum / static_cast<double>(pixels.size());
      const bool jpeg = name.ends_with(".jpg") && !name.starts_with("png_");
      const bool exact =
          !jpeg && !name.starts_with("pal_") && !name.starts_with("jpeg_");
      INFO("largest " << largest << " mean " << average);
      CHECK(largest <= (exact ? 0 : 24));
      CHECK(average <= (exact ? 0 : 1.5));
    }
  }
  CHECK(seen == 18);
  for (const auto& entry : fs::directory_iterator(xray / "odd")) {
    const auto extension = entry.path().extension().string();
    INFO(entry.path());
    if (extension == ".csv") continue;
    if (extension == ".dcm")
      CHECK(error_of<DataError>([&] { decoded(entry.path()); }).find("DICOM") !=
            std::string::npos);
    else
      CHECK(decoded(entry.path()).width() >= 277);
  }
}
