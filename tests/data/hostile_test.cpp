// Damaged and hostile bytes end in a DataError or in pixels, never in anything
// else. Also tested under the address sanitizer.
#include <turbojpeg.h>

#include <cstdlib>
#include <functional>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/encode.hpp"
#include "chexnet/data/pack.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "chexnet/data/storage/tfrecord.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/png_parts.hpp"

using namespace chexnet;

namespace {

using Bytes = std::vector<std::byte>;

// A few bytes changed, a piece cut out, doubled, or the end missing.
Bytes mutated(const Bytes& good, Random& random) {
  Bytes bad = good;
  const auto at = [&] {
    return random.below(static_cast<uint32_t>(bad.size()));
  };
  for (uint32_t n = 1 + random.below(4); n > 0 && !bad.empty(); --n) {
    switch (random.below(6)) {
      case 0:
      case 1:
      case 2:
        bad[at()] = static_cast<std::byte>(random.below(256));
        break;
      case 3:
        bad[at()] ^= static_cast<std::byte>(1u << random.below(8));
        break;
      case 4:
        bad.resize(at());
        break;
      default: {
        const auto from = at();
        const auto length =
            std::min<size_t>(random.below(60), bad.size() - from);
        const Bytes piece(bad.begin() + from,
                          bad.begin() + from + static_cast<long>(length));
        bad.insert(bad.begin() + at(), piece.begin(), piece.end());
      }
    }
  }
  return bad;
}

// Fails on anything but a DataError.
int refused(const std::function<void()>& action) {
  try {
    action();
    return 0;
  } catch (const DataError&) {
    return 1;
  }
}

Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::vector<uint8_t> picture(int width, int height) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < width * height; ++i)
    pixels.push_back(static_cast<uint8_t>(i * 7 + i / width * 3));
  return pixels;
}

}  // namespace

TEST_CASE("mutated pictures are refused or decoded, nothing else") {
  Random random(11, Purpose::kTest, 0);
  const auto pixels = picture(97, 61);
  Bytes jpeg;
  {
    const tjhandle handle = tjInitCompress();
    unsigned char* out = nullptr;
    unsigned long size = 0;
    tjCompress2(handle, pixels.data(), 97, 0, 61, TJPF_GRAY, &out, &size,
                TJSAMP_GRAY, 90, 0);
    jpeg.assign(reinterpret_cast<std::byte*>(out),
                reinterpret_cast<std::byte*>(out) + size);
    tjFree(out);
    tjDestroy(handle);
  }
  const Bytes png = encode_gray_png(pixels.data(), 97, 61);
  GrayImage image;
  std::vector<uint8_t> small(32 * 32);
  int bad = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes file = mutated(i % 3 == 0 ? jpeg : png, random);
    if (i % 3 == 1) mend_chunks(file);
    bad += refused([&] { decode_image(file, {1'000'000, 0}, "x", image); });
    refused([&] {
      decode_resized(file, {1'000'000, 0}, "x", 32, ResizeKind::kAntialias,
                     image, small.data());
    });
  }
  CHECK(bad > 2000);
}

TEST_CASE("mutated containers are refused or read, nothing else") {
  Random random(11, Purpose::kTest, 1);
  const ScratchFolder folder;
  const auto store = local_store();
  std::string shard;
  for (const char* name : {"one.png", "two.png"}) {
    Example example;
    const std::string content(300, 'p');
    const Bytes image = bytes_of(content);
    example.image = image;
    example.filename = name;
    example.labels = {1, 0};
    example.label_names = {"Mass", "Edema"};
    append_record(shard, encode_example(example));
  }
  folder.write("in/a.png", std::string(3000, 'a') + "some text");
  folder.write("in/b.png", "more text");
  REQUIRE(std::system(("cd " + (folder / "in").string() +
                       " && tar cf ../x.tar a.png b.png && gzip -k ../x.tar")
                          .c_str()) == 0);
  const PackShape shape{8, ResizeKind::kArea, {"a.png", "b.png", "c.png"}};
  const std::string pack_path = (folder / "x.pack").string();
  PackWriter::prepare(pack_path, shape);
  {
    PackWriter writer(pack_path, shape);
    for (uint64_t i = 0; i < 3; ++i) writer.write(i, picture(8, 8), {});
    writer.finish();
  }
  Bytes tar, gz, pack;
  read_bytes(folder / "x.tar", tar);
  read_bytes(folder / "x.tar.gz", gz);
  read_bytes(pack_path, pack);
  const auto none = [](uint64_t) {};
  int bad = 0;
  for (int i = 0; i < 2000; ++i) {
    const Bytes& good = i % 4 == 0   ? tar
                        : i % 4 == 1 ? gz
                        : i % 4 == 2 ? pack
                                     : bytes_of(shard);
    const Bytes file = mutated(good, random);
    const std::string path = folder.write(
        "bad",
        std::string(reinterpret_cast<const char*>(file.data()), file.size()));
    const auto fresh = local_store();  // the other one keeps the old file open
    bad += refused([&] {
      switch (i % 4) {
        case 0:
          tar_entries(*fresh, {path, file.size()}, none);
          break;
        case 1:
          tar_gz_entries(*fresh, {path, file.size()}, none);
          break;
        case 2: {
          const PackReader reader(path, *fresh);
          Bytes scratch;
          for (uint64_t k = 0; k < reader.shape().names.size(); ++k)
            reader.pixels(k, scratch);
          break;
        }
        default:
          tfrecord_entries(*fresh, {path, file.size()}, none);
      }
    });
    refused([&] { decode_example(mutated(bytes_of(shard), random), "x"); });
    refused([&] {
      const Bytes text = mutated(
          bytes_of(index_text({{.name = "a", .offset = 5, .window = {{1, 2}}}},
                              ContainerKind::kTarGz, {"a", 9})),
          random);
      entries_of_text({reinterpret_cast<const char*>(text.data()), text.size()},
                      "x");
    });
  }
  CHECK(bad > 1000);
}
