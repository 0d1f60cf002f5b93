#include "data/near_duplicates.hpp"

#include <turbojpeg.h>

#include <algorithm>
#include <bit>

#include "chexnet/core/read_file.hpp"
#include "chexnet/data/audit.hpp"
#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/image/encode.hpp"
#include "chexnet/data/image/resize.hpp"
#include "chexnet/data/phantom.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

GrayImage read_image(const fs::path& path) {
  std::vector<std::byte> bytes;
  read_bytes(path, bytes);
  GrayImage image;
  decode_image(bytes, DecodeLimits{}, path.string(), image);
  return image;
}

GrayImage resized(const GrayImage& image, int size, ResizeKind kind) {
  std::vector<uint8_t> pixels(static_cast<size_t>(size * size));
  resize(image, {0, 0, image.width(), image.height()}, size, kind,
         pixels.data());
  GrayImage out;
  out.assign(pixels.data(), size, size);
  return out;
}

GrayImage as_jpeg(const GrayImage& image, int quality) {
  const auto pixels = image.contiguous();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const tjhandle codec = tjInitCompress();
  REQUIRE(tjCompress2(codec, pixels.data(), image.width(), 0, image.height(),
                      TJPF_GRAY, &bytes, &size, TJSAMP_GRAY, quality, 0) == 0);
  GrayImage out;
  decode_image(std::as_bytes(std::span(bytes, size)), DecodeLimits{}, "jpeg",
               out);
  tjFree(bytes);
  tjDestroy(codec);
  return out;
}

std::vector<GrayImage> copies_of(const GrayImage& image) {
  std::vector<GrayImage> copies;
  for (const int quality : {90, 50, 20})
    copies.push_back(as_jpeg(image, quality));
  for (const int size : {128, 224, 512})
    for (const auto kind : {ResizeKind::kAntialias, ResizeKind::kArea})
      copies.push_back(resized(image, size, kind));
  copies.push_back(as_jpeg(copies[5], 75));  // 224 px
  return copies;
}

GrayImage drawing(uint32_t patient, uint32_t follow_up) {
  const PhantomImage drawn = draw_phantom(3, patient, follow_up, 256);
  GrayImage image;
  image.assign(drawn.pixels.data(), drawn.size, drawn.size);
  return image;
}

// Over how many signs and gray levels two pictures differ.
struct Difference {
  int signs = 0;
  double levels = 0;
};
Difference between(const PictureSketch& a, const PictureSketch& b) {
  int sum = 0;
  for (size_t i = 0; i < a.tiny.size(); ++i)
    sum += std::abs(a.tiny[i] - b.tiny[i]);
  return {std::popcount(a.hash ^ b.hash),
          sum / static_cast<double>(a.tiny.size())};
}

}  // namespace

TEST_CASE(
    "copies that were re-encoded or resized are grouped with their picture "
    "alone") {
  std::vector<PictureSketch> sketches;
  std::vector<std::vector<size_t>> expected;
  for (uint32_t patient = 1; patient <= 12; ++patient) {
    const GrayImage image = drawing(patient, 0);
    std::vector<size_t> group = {sketches.size()};
    sketches.push_back(sketch_of(image));
    for (const auto& copy : copies_of(image)) {
      group.push_back(sketches.size());
      sketches.push_back(sketch_of(copy));
    }
    expected.push_back(group);
  }
  CHECK(nearly_same_groups(sketches) == expected);
  CHECK(nearly_same_groups({}).empty());
}

TEST_CASE("a copy is found whichever five signs differ, not with six") {
  const PictureSketch picture = sketch_of(drawing(1, 0));
  for (int first = 0; first < 64; ++first) {
    PictureSketch copy = picture;
    for (int i = 0; i < 5; ++i)
      copy.hash ^= uint64_t{1} << ((first + 7 * i) % 64);
    CHECK(nearly_same_groups(std::vector{picture, copy}).size() == 1);
    copy.hash ^= uint64_t{1} << ((first + 35) % 64);
    CHECK(nearly_same_groups(std::vector{picture, copy}).empty());
  }
  PictureSketch darker = picture;
  for (auto& level : darker.tiny)
    level = static_cast<uint8_t>(level < 3 ? level + 3 : level - 3);
  CHECK(nearly_same_groups(std::vector{picture, darker}).empty());
}

TEST_CASE(
    "real X-rays: copies differ by less than two patients' pictures ever do",
    "[arithmetic]") {
  const auto xray = xray_folder();
  if (xray.empty()) return;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(xray / "nih352/images"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  std::vector<PictureSketch> sketches;
  Difference most, least{64, 255};
  for (size_t i = 0; i < names.size(); ++i) {
    const GrayImage image = read_image(xray / "nih352/images" / names[i]);
    sketches.push_back(sketch_of(image));
    if (i % 8 != 0) continue;
    for (const auto& copy : copies_of(image)) {
      const auto difference = between(sketches.back(), sketch_of(copy));
      most.signs = std::max(most.signs, difference.signs);
      most.levels = std::max(most.levels, difference.levels);
    }
  }
  size_t pairs = 0;
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t j = i + 1; j < names.size(); ++j) {
      if (names[i].substr(0, 8) == names[j].substr(0, 8))
        continue;  // the patient
      const auto difference = between(sketches[i], sketches[j]);
      least.signs = std::min(least.signs, difference.signs);
      least.levels = std::min(least.levels, difference.levels);
      ++pairs;
    }
  INFO("copies: at most " << most.signs << " signs and " << most.levels
                          << " levels; " << pairs
                          << " pairs of two patients: at least " << least.signs
                          << " signs and " << least.levels << " levels");
  CHECK(most.signs <= 5);
  CHECK(most.levels <= 1);
  CHECK(least.levels >= 6);

  // These were made of nih352's: JPEG, another size, stretched.
  const size_t originals = sketches.size();
  for (const auto& entry :
       fs::recursive_directory_iterator(xray / "chexpert_layout"))
    if (entry.path().extension() == ".jpg")
      sketches.push_back(sketch_of(read_image(entry.path())));
  CHECK(sketches.size() == originals + 260);
  size_t found = 0;
  for (const auto& group : nearly_same_groups(sketches)) {
    const auto copies =
        std::ranges::count_if(group, [&](auto i) { return i >= originals; });
    found += static_cast<size_t>(copies);
    if (copies == 0) continue;
    // Two of nih352's pictures are the same, and both have a copy.
    CHECK(group.size() == static_cast<size_t>(2 * copies));
  }
  CHECK(found == 260);
}

TEST_CASE(
    "an audit names a resized copy under another patient, and calls it a leak "
    "across splits") {
  const ScratchFolder folder;
  std::string table = "file,patient,Effusion\n";
  const auto add = [&](const std::string& name, const GrayImage& image) {
    const auto pixels = image.contiguous();
    const auto png =
        encode_gray_png(pixels.data(), image.width(), image.height());
    folder.write(
        "images/" + name,
        std::string(reinterpret_cast<const char*>(png.data()), png.size()));
    table += name + "," + name + ",0\n";
  };
  for (uint32_t patient = 1; patient <= 5; ++patient)
    add("p" + std::to_string(patient) + ".png", drawing(patient, 0));
  add("small.png", resized(drawing(2, 0), 200, ResizeKind::kArea));
  add("large.png", resized(drawing(4, 0), 300, ResizeKind::kAntialias));
  add("again.png", drawing(5, 0));

  DataConfig config;
  config.manifest.format = {ManifestFormat::kCsv};
  config.manifest.path = {folder.write("table.csv", table)};
  config.manifest.columns.image = "file";
  config.manifest.columns.patient = "patient";
  config.images = {(folder / "images").string()};
  config.train_list = folder.write(
      "train.txt",
      "p1.png\np2.png\np3.png\np4.png\np5.png\nlarge.png\nagain.png\n");
  config.test_list = folder.write("test.txt", "small.png\n");
  config.val_fraction = 0;
  const Manifest manifest = read_manifest(config);
  Stores stores;
  const Audit found = audit(config, manifest, make_splits(manifest, config),
                            stores, 2, [](auto, auto) {});
  using Groups = std::vector<std::vector<std::string>>;
  CHECK(found.duplicates == Groups{{"p5.png", "again.png"}});
  CHECK(found.near_duplicates ==
        Groups{{"p2.png", "small.png"}, {"p4.png", "large.png"}});
  CHECK(found.leaks ==
        std::vector<std::string>{
            "p2.png (train) and small.png (test) are nearly the same picture"});
  CHECK_FALSE(found.clean());
}
