// The same images from every kind of container give the same batches, and
// damage is named.
#include <filesystem>
#include <fstream>

#include "chexnet/core/error.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/storage/tfrecord.hpp"
#include "support/catch.hpp"
#include "support/container_set.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

std::vector<uint8_t> batches(const ImageSource& source, int ranks, int workers,
                             int readers) {
  auto& c = containers();
  std::vector<uint8_t> all;
  const ImageReader reader(source, kContainerInput,
                           {TrainCrop::kRandom, true, 0.8, 5, 0.1, 0.2}, 5);
  std::vector<std::unique_ptr<TrainSampler>> samplers;
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < ranks; ++rank) {
    samplers.push_back(std::make_unique<TrainSampler>(
        c.rows,
        StreamPart{.seed = 5, .batch = 8, .rank = rank, .world_size = ranks}));
    loaders.push_back(std::make_unique<Loader>(
        c.manifest, reader, *samplers.back(),
        Loader::Options{8 / ranks, workers, 2, readers}));
  }
  for (int step = 0; step < 12; ++step) {
    std::vector<const Batch*> parts;
    for (auto& loader : loaders) parts.push_back(&loader->next());
    for (int i = 0; i < 8; ++i) {  // position p went to rank p mod R
      const Batch& part = *parts[static_cast<size_t>(i % ranks)];
      REQUIRE(part.damaged == 0);
      const auto image = part.images.subspan(
          static_cast<size_t>(i / ranks) * 32 * 32, 32 * 32);
      all.insert(all.end(), image.begin(), image.end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE(
    "batches are bit-identical from every container, for any threads and "
    "ranks") {
  auto& c = containers();
  const auto wanted = batches(c.open("folder"), 1, 0, 0);
  for (const auto& [kind, place] : c.places) {
    const ImageSource source = c.open(kind);
    for (const auto& [ranks, workers, readers] : {std::tuple{1, 0, 0},
                                                  {1, 3, 0},
                                                  {2, 2, 0},
                                                  {4, 1, 5},
                                                  {1, 0, 4},
                                                  {2, 3, 16}}) {
      INFO(kind << " ranks " << ranks << " workers " << workers << " readers "
                << readers);
      CHECK(batches(source, ranks, workers, readers) == wanted);
    }
  }
}

TEST_CASE(
    "a changed byte of any container is named, and only that image is lost") {
  auto& c = containers();
  for (const char* kind : {"tar", "tar.gz", "tfrecord", "pack"}) {
    const ScratchFolder folder;
    fs::copy(c.places[kind], folder / fs::path(c.places[kind]).filename(),
             fs::copy_options::recursive);
    c.open(kind);  // index files exist now
    fs::copy(
        c.places[kind] + (std::string(kind) == "tar" ? ".index" : ""),
        folder / (fs::path(c.places[kind]).filename().string() +
                  (std::string(kind) == "tar" ? ".index" : "")),
        fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const std::string place =
        (folder / fs::path(c.places[kind]).filename()).string();
    Stores stores;
    const ImageIndex index =
        ImageIndex::scan(c.manifest, c.rows, {place}, stores);
    const ImageLocation& victim = index.location(5);
    const std::string path = index.containers()[victim.container].path;
    uint64_t at = victim.entry.offset + victim.entry.length / 2 + 20;
    if (std::string(kind) == "tar.gz")
      at = victim.entry.offset + victim.entry.stored / 2;
    if (std::string(kind) == "pack")
      at = fs::file_size(path) - 1600 * (c.rows.size() - 5) + 100;
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char old = static_cast<char>(file.get());
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(old ^ 0x20));
    }
    const ImageSource source(index, stores);
    FetchedImage fetched;
    int damaged = 0;
    std::string text;
    for (const auto row : c.rows) {
      const std::string error =
          error_of<DataError>([&] { source.fetch(row, fetched); });
      damaged += error.empty() ? 0 : 1;
      if (text.empty()) text = error;
    }
    INFO(kind << ": " << text);
    CHECK(text.find(path) != std::string::npos);
    CHECK(text.find("byte") != std::string::npos);
    // A gzip block may be shared by neighbors.
    CHECK((damaged == 1 || (std::string(kind) == "tar.gz" && damaged <= 12)));
  }
}

TEST_CASE("an archive whose members were renamed gives no other pixels") {
  // The second pair differs after the 100 bytes that a header itself holds.
  const std::string deep(120, 'd');
  for (const auto& [a, b] :
       {std::pair<std::string, std::string>{"a.png", "b.png"},
        {deep + "/a.png", deep + "/b.png"}})
    for (const char* format : {"gnu", "pax"}) {
      INFO(a << " " << format);
      const ScratchFolder folder;
      folder.write("in/" + a, std::string(200, 'a'));
      folder.write("in/" + b, std::string(200, 'b'));
      const std::string path = (folder / "x.tar").string();
      const auto pack = [&](const std::string& members) {
        const std::string command = "cd '" + (folder / "in").string() +
                                    "' && tar --mtime=@0 --format=" + format +
                                    " -cf ../x.tar " + members;
        REQUIRE(std::system(command.c_str()) == 0);
        fs::last_write_time(path, fs::file_time_type());
      };
      Manifest manifest;
      manifest.images = {a, b};
      Stores stores;
      const auto index = [&] {
        return ImageIndex::scan(manifest, {0, 1}, {path}, stores);
      };
      pack("'" + a + "' '" + b + "'");
      const ImageIndex before = index();
      FetchedImage fetched;
      const ImageSource sound(before, stores);
      sound.fetch(0, fetched);
      CHECK(fetched.bytes.size() == 200);
      CHECK(std::to_integer<char>(fetched.bytes[0]) == 'a');
      // The same contents at the same paths, of the same size and time.
      pack("--transform 's,a\\.png$,t,;s,b\\.png$,a.png,;s,t$,b.png,' '" + a +
           "' '" + b + "'");
      CHECK(index().location(0) == before.location(0));
      const ImageSource stale(before, stores);
      CHECK(error_of<DataError>([&] {
              stale.fetch(0, fetched);
            }).find("delete its .index file") != std::string::npos);
      fs::remove(path + ".index");
      const ImageSource fresh(index(), stores);
      fresh.fetch(0, fetched);
      CHECK(std::to_integer<char>(fetched.bytes[0]) == 'b');
    }
}

TEST_CASE("a shard with its records in another order gives no other pixels") {
  const ScratchFolder folder;
  const auto record = [](const std::string& name, char content) {
    const std::string image(200, content);
    Example example;
    example.image = std::as_bytes(std::span(image));
    example.filename = name;
    std::string bytes;
    append_record(bytes, encode_example(example));
    return bytes;
  };
  const std::string a = record("a.png", 'a'), b = record("b.png", 'b');
  const std::string path = folder.write("train-00000-of-00001", a + b);
  Manifest manifest;
  manifest.images = {"a.png", "b.png"};
  const auto index = [&] {
    Stores stores;
    return ImageIndex::scan(manifest, {0, 1}, {path}, stores);
  };
  const ImageIndex before = index();
  const auto written = fs::last_write_time(path);
  folder.write("train-00000-of-00001", b + a);
  Stores stores;
  FetchedImage fetched;
  // By the old index: an error, not the other record.
  const ImageSource stale(before, stores);
  CHECK(error_of<DataError>([&] {
          stale.fetch(0, fetched);
        }).find("another record") != std::string::npos);
  // By a new scan: indexed again.
  const ImageSource fresh(index(), stores);
  fresh.fetch(0, fetched);
  CHECK(std::to_integer<char>(fetched.bytes[0]) == 'a');
  // Even when the time of writing was kept.
  folder.write("train-00000-of-00001", a + b);
  index();
  folder.write("train-00000-of-00001", b + a);
  fs::last_write_time(path, written);
  const ImageIndex kept = index();
  fs::last_write_time(path, written);
  folder.write("train-00000-of-00001", a + b);
  fs::last_write_time(path, written);
  CHECK(index().location(0) == kept.location(0));  // the same size and time
  Stores again;
  const ImageSource same_time(index(), again);
  CHECK_FALSE(
      error_of<DataError>([&] { same_time.fetch(0, fetched); }).empty());
}
