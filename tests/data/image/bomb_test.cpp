// Small files that ask for much memory or time.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "chexnet/core/error.hpp"
#include "chexnet/core/sanitized.hpp"
#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/encode.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/png_parts.hpp"

using namespace chexnet;

namespace {

using Bytes = std::vector<std::byte>;
constexpr long kMiB = 1 << 20;

// The largest resident memory of a new process that runs `action`, bytes; -1
// when it failed.
long resident_bytes(const std::function<void()>& action) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      action();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? usage.ru_maxrss * 1024
                                                       : -1;
}

// What `action` needs on top of this process's memory.
long needed_bytes(const std::function<void()>& action) {
  const long with = resident_bytes(action);
  return with < 0 ? with : std::max(0L, with - resident_bytes([] {}));
}

std::string refusal(const Bytes& file) {
  GrayImage image;
  return error_of<DataError>([&] { decode_image(file, {}, "bomb", image); });
}

void resized(const Bytes& file, int size, ResizeKind kind) {
  GrayImage scratch;
  std::vector<uint8_t> pixels(static_cast<size_t>(size) *
                              static_cast<size_t>(size));
  decode_resized(file, {}, "bomb", size, kind, scratch, pixels.data());
}

Bytes png(int width, int height, uint8_t depth, uint8_t color_type,
          std::span<const uint8_t> lines) {
  Bytes file = png_head(width, height, depth, color_type);
  put_chunk(file, "IDAT", deflated(lines));
  put_chunk(file, "IEND", {});
  return file;
}

class Jpeg {
 public:
  Jpeg() : bytes_{std::byte{0xFF}, std::byte{0xD8}} {}
  void segment(uint8_t marker, const std::vector<int>& body) {
    const int length = static_cast<int>(body.size()) + 2;
    put({0xFF, marker, length >> 8, length & 255});
    put(body);
  }
  void put(const std::vector<int>& bytes) {
    for (const int b : bytes) bytes_.push_back(static_cast<std::byte>(b));
  }
  // Progressive, gray.
  void frame(int width, int height) {
    segment(0xC2, {8, height >> 8, height & 255, width >> 8, width & 255, 1, 1,
                   0x11, 0});
  }
  // Coefficients first..last, bits below `high` (0: none were sent yet) down to
  // `low`; one block without anything in it.
  void scan(int first, int last, int high, int low) {
    segment(0xDA, {1, 1, 0, first, last, high << 4 | low});
    put({0x7F});
  }
  const Bytes& end() {
    put({0xFF, 0xD9});
    return bytes_;
  }

 private:
  Bytes bytes_;
};

}  // namespace

TEST_CASE(
    "a picture longer than a JPEG can be is refused before memory is taken") {
  const Bytes narrow = png(1, 16'000'000, 8, 0, {});
  CHECK(narrow.size() < 70);
  CHECK(refusal(narrow).find(
            "is 1 x 16000000 pixels, more than 65535 on a side") !=
        std::string::npos);
  CHECK(refusal(png(65'536, 1, 8, 0, {})).find("more than 65535") !=
        std::string::npos);
  const long needed = needed_bytes([&] { refusal(narrow); });
  CHECK((needed >= 0 && needed < 16 * kMiB));
}

TEST_CASE(
    "a header that promises more rows than its data can hold takes no memory") {
  for (const auto& [depth, color] :
       {std::pair{8, 0}, {16, 0}, {8, 2}, {8, 6}}) {
    INFO("depth " << depth << " color type " << color);
    const Bytes empty = png(8000, 8000, static_cast<uint8_t>(depth),
                            static_cast<uint8_t>(color), {});
    CHECK(refusal(empty).find("rows are missing") != std::string::npos);
    const long needed = needed_bytes([&] { refusal(empty); });
    CHECK((needed >= 0 && needed < 16 * kMiB));
  }
  Jpeg jpeg;
  jpeg.frame(8000, 8000);
  jpeg.scan(0, 0, 0, 0);
  const Bytes file = jpeg.end();
  CHECK(refusal(file).find("cut off") != std::string::npos);
  const long needed = needed_bytes([&] { refusal(file); });
  CHECK((needed >= 0 && needed < 16 * kMiB));
}

#ifndef __SANITIZE_THREAD__  // which keeps a multiple of what is touched
TEST_CASE("the highest picture is resized with the memory of a few lines") {
  const Bytes high = png(1, 65'535, 8, 0, std::vector<uint8_t>(2 * 65'535));
  for (const auto kind : {ResizeKind::kAntialias, ResizeKind::kArea}) {
    const long needed = needed_bytes([&] { resized(high, 1024, kind); });
    CHECK((needed >= 0 && needed < 40 * kMiB));
  }
}
#endif

TEST_CASE("profiles and texts of a PNG are not unpacked") {
  const std::vector<uint8_t> zeros(size_t{64} << 20);
  const auto packed = deflated(zeros);
  const std::string_view name("x\0\0", 3);
  std::vector<uint8_t> body(name.begin(), name.end());
  body.insert(body.end(), packed.begin(), packed.end());
  for (const char* type : {"iCCP", "zTXt"}) {
    INFO(type);
    Bytes file = png_head(2, 1, 8, 6);
    put_chunk(file, type, body);
    put_chunk(file, "IDAT",
              deflated(std::vector<uint8_t>{0, 90, 90, 90, 255, 7, 7, 7, 0}));
    put_chunk(file, "IEND", {});
    const long needed = needed_bytes([&] {
      GrayImage image;
      decode_image(file, {}, "bomb", image);
      if (image.contiguous() != std::vector<uint8_t>{90, 7}) _exit(2);
    });
    CHECK((needed >= 0 && needed < 16 * kMiB));
  }
}

TEST_CASE("a JPEG of hundreds of scans is refused") {
  const auto scans = [](int last_coefficient) {
    Jpeg jpeg;
    jpeg.segment(0xDB, [] {
      std::vector<int> table(65, 1);
      table[0] = 0;
      return table;
    }());
    jpeg.frame(8, 8);
    for (const int kind : {0x00, 0x10}) {  // of DC and AC: code 0 for symbol 0
      std::vector<int> table(18, 0);
      table[0] = kind;
      table[1] = 1;
      jpeg.segment(0xC4, table);
    }
    jpeg.scan(0, 0, 0, 0);
    for (int k = 1; k <= last_coefficient; ++k) {
      jpeg.scan(k, k, 0, 13);
      for (int bit = 13; bit > 0; --bit) jpeg.scan(k, k, bit, bit - 1);
    }
    return jpeg.end();
  };
  GrayImage image;
  decode_image(scans(2), {}, "real", image);
  CHECK(image.contiguous() == std::vector<uint8_t>(64, 128));
  CHECK(refusal(scans(63)).find("more than 500 scans") != std::string::npos);
}

TEST_CASE("an image that does not fit in memory is an error of this image") {
  if (kSanitized) return;  // their allocators end the process instead
  // Above the 32 MiB from which malloc always asks the kernel: what earlier
  // tests freed is no room for it.
  const std::vector<uint8_t> pixels(size_t{6000} * 6000, 9);
  const auto file = encode_gray_png(pixels.data(), 6000, 6000);
  const long needed = needed_bytes([&] {
    const rlimit limit{0, 0};
    setrlimit(RLIMIT_DATA, &limit);
    if (refusal(file).find("bomb: needs more memory") == std::string::npos)
      _exit(2);
  });
  CHECK(needed >= 0);
}
