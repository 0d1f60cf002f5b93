// Packs and record shards: the same whoever writes them, taken up after an
// interruption, refused for another input.
#include "chexnet/data/pack.hpp"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/storage/stores.hpp"
#include "support/catch.hpp"
#include "support/container_set.hpp"
#include "support/counting_store.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

TEST_CASE(
    "a pack written by several ranks and threads is the same to the last "
    "byte") {
  auto& c = containers();
  const ImageSource source = c.open("tar.gz");
  PackJob job;
  job.rows = c.rows;
  job.preprocessing = kContainerInput;
  job.per_shard = 10;
  const auto bytes_of = [](const fs::path& path) {
    std::vector<std::byte> bytes;
    read_bytes(path, bytes);
    return bytes;
  };
  for (const int ranks : {1, 3}) {
    const ScratchFolder folder;
    std::atomic<uint64_t> written_again = 0;  // Catch's CHECK is for one thread
    ThreadWorld(ranks).run([&](Communicator& comm) {
      PackJob own = job;
      own.threads = 2;
      own.out = (folder / "again.pack").string();
      write_pixel_pack(own, c.manifest, source, comm, [](auto, auto) {});
      own.out = (folder / "records").string();
      write_records(own, c.manifest, source, comm, [](auto, auto) {});
      // Once more: nothing to do.
      written_again +=
          write_records(own, c.manifest, source, comm, [](auto, auto) {
          }).written;
    });
    CHECK(written_again == 0);
    CHECK(bytes_of(folder / "again.pack") == bytes_of(c.places["pack"]));
    for (const char* name : {"train-00000-of-00004", "train-00003-of-00004"})
      CHECK(bytes_of(folder / ("records/" + std::string(name))) ==
            bytes_of(fs::path(c.places["tfrecord"]) / name));
  }
}

TEST_CASE("an interrupted pack goes on, and does not trust what was torn") {
  auto& c = containers();
  const ImageSource source = c.open("folder");
  const ScratchFolder folder;
  const std::string path = (folder / "x.pack").string();
  PackShape shape{40, ResizeKind::kAntialias, c.manifest.images};
  PackWriter::prepare(path, shape);
  std::vector<std::byte> scratch;
  {
    PackWriter writer(path, shape);
    std::vector<uint8_t> wrong(1600, 7);
    writer.write(3, wrong, {});
    CHECK(writer.has(3, scratch));
    CHECK_FALSE(writer.has(4, scratch));
  }
  // The pixels of image 3 change without its checksum: it must be made again.
  {
    std::fstream file(folder / ".x.pack.partial",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto size = static_cast<int64_t>(file.tellg());
    file.seekp(size - static_cast<int64_t>(c.manifest.size() - 3) * 1600);
    file.put('x');
  }
  CHECK_FALSE(PackWriter(path, shape).has(3, scratch));
  PackJob job;
  job.out = path;
  job.rows = c.rows;
  job.preprocessing = kContainerInput;
  const auto comm = solo_communicator();
  write_pixel_pack(job, c.manifest, source, *comm, [](auto, auto) {});
  std::vector<std::byte> got, wanted;
  read_bytes(path, got);
  read_bytes(c.places["pack"], wanted);
  CHECK(got == wanted);
  job.preprocessing.resize = 48;
  CHECK(error_of<CheckpointError>([&] {
          write_pixel_pack(job, c.manifest, source, *comm, [](auto, auto) {});
        }).find("holds other images") != std::string::npos);
}

TEST_CASE("a pack that is written again while it is read is not believed") {
  const ScratchFolder folder;
  const std::string path = folder / "a.pack";
  fs::copy_file(containers().places["pack"], path);
  Stores stores;
  const PackReader pack(path, stores.of(path));
  std::vector<std::byte> scratch;
  CHECK(pack.pixels(0, scratch).size() > 0);
  const auto size = static_cast<size_t>(fs::file_size(path));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(size - 8192, '\xff');
  }
  const auto error = error_of<DataError>([&] { pack.pixels(0, scratch); });
  CHECK(error.find("image 0") != std::string::npos);
  CHECK(error.find("written again") != std::string::npos);
}

TEST_CASE("a pack of another size or resize is refused") {
  auto& c = containers();
  const ImageSource source = c.open("pack");
  CHECK(error_of<ConfigError>([&] {
          ImageReader(source, {48, 32, ResizeKind::kAntialias},
                      Augmentation::none(), 1);
        }).find("holds images of 40 pixels (antialias)") != std::string::npos);
  CHECK_FALSE(error_of<ConfigError>([&] {
                ImageReader(source, {40, 32, ResizeKind::kArea},
                            Augmentation::none(), 1);
              }).empty());
}

TEST_CASE("a pack is no source of random resized crops") {
  auto& c = containers();
  const Augmentation cropped{.crop = TrainCrop::kResized};
  const ImageSource pack = c.open("pack"), tar = c.open("tar");
  CHECK(error_of<ConfigError>([&] {
          ImageReader(pack, kContainerInput, cropped, 1);
        }).find("data.train_crop=resized") != std::string::npos);
  ImageReader(tar, kContainerInput, cropped, 1);
}

TEST_CASE("one pack at a time writes to a place") {
  auto& c = containers();
  const ImageSource source = c.open("folder");
  const ScratchFolder folder;
  PackJob job;
  job.rows = c.rows;
  job.preprocessing = kContainerInput;
  const auto comm = solo_communicator();
  {
    const auto pixels = FileLock::try_take(folder / ".x.pack.lock");
    job.out = (folder / "x.pack").string();
    CHECK(error_of<CheckpointError>([&] {
            write_pixel_pack(job, c.manifest, source, *comm, [](auto, auto) {});
          }).find("[pack] " + job.out + ": another pack writes there now") ==
          0);
    fs::create_directory(folder / "records");
    const auto records = FileLock::try_take(folder / "records/.train.lock");
    job.out = (folder / "records").string();
    CHECK(error_of<CheckpointError>([&] {
            write_records(job, c.manifest, source, *comm, [](auto, auto) {});
          }).find("[pack] " + job.out + ": another pack writes there now") ==
          0);
  }
  write_records(job, c.manifest, source, *comm, [](auto, auto) {});
  CHECK_FALSE(fs::exists(folder / "records/.train.lock"));
}

TEST_CASE(
    "a pack's header is not believed: no memory for names that are not there") {
  auto& c = containers();
  std::vector<std::byte> bytes;
  read_bytes(c.places["pack"], bytes);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  uint32_t length = 0;
  std::memcpy(&length, &text[8], 4);
  std::string json = text.substr(16, length);
  const std::string key = "\"names_bytes\":";
  const auto at = json.find(key) + key.size();
  json.replace(at, json.find(',', at) - at, "4294967296");
  const auto size = static_cast<uint32_t>(json.size());
  const uint32_t crc = crc32c(std::as_bytes(std::span(json)));
  std::memcpy(&text[8], &size, 4);
  std::memcpy(&text[12], &crc, 4);
  text.replace(16, json.size(), json);
  const ScratchFolder folder;
  CountingStore store;
  CHECK(error_of<DataError>([&] {
          PackReader(folder.write("x.pack", text), store);
        }).find("its names are damaged") != std::string::npos);
  CHECK(store.largest <= 64 << 20);
  CHECK(error_of<DataError>([&] {
          PackWriter::prepare((folder / "y.pack").string(),
                              {8, ResizeKind::kArea, {"a.png", "b\nc.png"}});
        }).find("image 1 has a line break") != std::string::npos);
}
