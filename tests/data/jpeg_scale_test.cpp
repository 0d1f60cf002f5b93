// data.jpeg_scale: whether a large JPEG is decoded at a part of its size.
#include <turbojpeg.h>

#include "chexnet/core/error.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/pack_job.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;

namespace {

constexpr int kSide = 320;

// One gray JPEG with edges, and a table of it.
struct OneJpeg {
  ScratchFolder folder;
  Stores stores;
  Manifest manifest;
  std::vector<std::byte> file;

  OneJpeg() {
    std::vector<unsigned char> pixels(kSide * kSide);
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x)
        pixels[static_cast<size_t>(y * kSide + x)] = static_cast<unsigned char>(
            (x / 3 + y / 5) % 2 * 200 + (x * y) % 40);
    unsigned char* jpeg = nullptr;
    unsigned long size = 0;
    const tjhandle handle = tjInitCompress();
    tjCompress2(handle, pixels.data(), kSide, 0, kSide, TJPF_GRAY, &jpeg, &size,
                TJSAMP_GRAY, 90, 0);
    const auto* bytes = reinterpret_cast<const std::byte*>(jpeg);
    file.assign(bytes, bytes + size);
    tjFree(jpeg);
    tjDestroy(handle);
    folder.write("images/a.jpg",
                 {reinterpret_cast<const char*>(file.data()), file.size()});
    DataConfig config;
    config.manifest.format = {ManifestFormat::kCsv};
    config.manifest.path = {folder.write("table.csv", "image,A\na.jpg,1\n")};
    manifest = read_manifest(config);
  }
  ImageSource source(const std::string& name) {
    return ImageSource(
        ImageIndex::scan(manifest, {0}, {(folder / name).string()}, stores),
        stores);
  }
};

Preprocessing small(JpegScale jpeg_scale) {
  DataConfig config;
  config.resize = config.crop = 40;
  config.jpeg_scale = jpeg_scale;
  return evaluation_preprocessing(config);
}

std::vector<uint8_t> read(const ImageSource& source,
                          const Preprocessing& preprocessing) {
  const ImageReader reader(source, preprocessing, Augmentation::none(), 1);
  ImageReader::Scratch scratch;
  std::vector<uint8_t> pixels(40 * 40);
  reader.read({.row = 0}, pixels.data(), scratch);
  return pixels;
}

}  // namespace

TEST_CASE(
    "data.jpeg_scale off decodes the whole JPEG and then resizes it, auto does "
    "not") {
  OneJpeg set;
  const auto expected = [&](int min_side) {
    GrayImage image;
    decode_image(set.file, {64'000'000, min_side}, "a.jpg", image);
    std::vector<uint8_t> pixels(40 * 40);
    resize(image, {0, 0, image.width(), image.height()}, 40,
           ResizeKind::kAntialias, pixels.data());
    return pixels;
  };
  const ImageSource source = set.source("images");
  CHECK(read(source, small(JpegScale::kOff)) == expected(0));
  CHECK(read(source, small(JpegScale::kAuto)) == expected(40));
  CHECK(expected(0) != expected(40));
}

TEST_CASE("a pack of scaled JPEGs does not pass for one of whole ones") {
  OneJpeg set;
  const auto comm = solo_communicator();
  for (const auto made : {JpegScale::kOff, JpegScale::kAuto}) {
    PackJob job;
    job.rows = {0};
    job.preprocessing = small(made);
    job.out =
        (set.folder / (std::string(choice_name(made)) + ".pack")).string();
    write_pixel_pack(job, set.manifest, set.source("images"), *comm,
                     [](auto, auto) {});
    const ImageSource pack =
        set.source(std::string(choice_name(made)) + ".pack");
    CHECK(read(pack, small(made)) == read(set.source("images"), small(made)));
    const auto other =
        made == JpegScale::kOff ? JpegScale::kAuto : JpegScale::kOff;
    CHECK(error_of<ConfigError>([&] {
            read(pack, small(other));
          }).find(std::string("data.jpeg_scale ") + choice_name(made)) !=
          std::string::npos);
  }
}
