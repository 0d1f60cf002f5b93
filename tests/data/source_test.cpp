// The same images from every kind of container give the same batches, and damage is named.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/pack_job.hpp"
#include "chexnet/data/phantom.hpp"
#include "chexnet/data/stage.hpp"
#include "chexnet/storage/tfrecord.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/fixtures.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

constexpr Preprocessing kInput{40, 32, ResizeKind::kAntialias, 1'000'000};

struct Containers {
  ScratchFolder folder;
  Stores stores;
  Manifest manifest;
  std::vector<std::uint32_t> rows;
  std::map<std::string, std::string> places;

  Containers() {
    PhantomOptions options;
    options.out = folder / "set";
    options.images = 37;
    options.size = 72;
    write_phantom_set(options, [](int) {});
    DataConfig config;
    config.manifest.path = (folder / "set/Data_Entry_2017.csv").string();
    manifest = read_manifest(config);
    for (std::uint32_t row = 0; row < manifest.size(); ++row) rows.push_back(row);
    places["folder"] = (folder / "set/images").string();
    const std::string set = (folder / "set").string(), out = folder.path().string();
    fs::create_directories(folder / "gz");
    REQUIRE(std::system(("cd " + set + " && tar cf " + out + "/all.tar images && tar czf " + out +
                         "/gz/images_001.tar.gz $(ls -d images/*[0-4]_*.png) && tar czf " + out +
                         "/gz/images_002.tar.gz $(ls -d images/*[5-9]_*.png)")
                            .c_str()) == 0);
    places["tar"] = out + "/all.tar";
    places["tar.gz"] = out + "/gz";
    PackJob job;
    job.rows = rows;
    job.preprocessing = kInput;
    job.per_shard = 10;
    job.threads = 2;
    const auto comm = solo_communicator();
    const ImageSource source = open("folder");
    job.out = places["pack"] = out + "/images.pack";
    write_pixel_pack(job, manifest, source, *comm, [](auto, auto) {});
    job.out = places["tfrecord"] = out + "/records";
    write_records(job, manifest, source, *comm, [](auto, auto) {});
  }
  ImageSource open(const std::string& kind) {
    return ImageSource(ImageIndex::scan(manifest, rows, {places.at(kind)}, stores), stores);
  }
};

Containers& containers() {
  static Containers made;
  return made;
}

std::vector<std::uint8_t> batches(const ImageSource& source, int ranks, int workers, int readers) {
  auto& c = containers();
  std::vector<std::uint8_t> all;
  const ImageReader reader(source, kInput, {true, false, true, 0.8, 5, 0.1, 0.2}, 5);
  std::vector<std::unique_ptr<TrainSampler>> samplers;
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < ranks; ++rank) {
    samplers.push_back(std::make_unique<TrainSampler>(c.rows, false, 5, 0, 8, rank, ranks));
    loaders.push_back(std::make_unique<Loader>(c.manifest, reader, *samplers.back(),
                                               Loader::Options{8 / ranks, workers, 2, readers}));
  }
  for (int step = 0; step < 12; ++step) {
    std::vector<const Batch*> parts;
    for (auto& loader : loaders) parts.push_back(&loader->next());
    for (int i = 0; i < 8; ++i) {  // position p went to rank p mod R
      const Batch& part = *parts[static_cast<std::size_t>(i % ranks)];
      REQUIRE(part.damaged == 0);
      const auto image =
          part.images.subspan(static_cast<std::size_t>(i / ranks) * 32 * 32, 32 * 32);
      all.insert(all.end(), image.begin(), image.end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("batches are bit-identical from every container, for any threads and ranks") {
  auto& c = containers();
  const auto wanted = batches(c.open("folder"), 1, 0, 0);
  for (const auto& [kind, place] : c.places) {
    const ImageSource source = c.open(kind);
    for (const auto& [ranks, workers, readers] :
         {std::tuple{1, 0, 0}, {1, 3, 0}, {2, 2, 0}, {4, 1, 5}, {1, 0, 4}, {2, 3, 16}}) {
      INFO(kind << " ranks " << ranks << " workers " << workers << " readers " << readers);
      CHECK(batches(source, ranks, workers, readers) == wanted);
    }
  }
}

TEST_CASE("a pack written by several ranks and threads is the same to the last byte") {
  auto& c = containers();
  const ImageSource source = c.open("tar.gz");
  PackJob job;
  job.rows = c.rows;
  job.preprocessing = kInput;
  job.per_shard = 10;
  const auto bytes_of = [](const fs::path& path) {
    std::vector<std::byte> bytes;
    read_bytes(path, bytes);
    return bytes;
  };
  for (const int ranks : {1, 3}) {
    const ScratchFolder folder;
    std::atomic<std::uint64_t> written_again = 0;  // Catch's CHECK is for one thread
    ThreadWorld(ranks).run([&](Communicator& comm) {
      PackJob own = job;
      own.threads = 2;
      own.out = (folder / "again.pack").string();
      write_pixel_pack(own, c.manifest, source, comm, [](auto, auto) {});
      own.out = (folder / "records").string();
      write_records(own, c.manifest, source, comm, [](auto, auto) {});
      // Once more: nothing to do.
      written_again += write_records(own, c.manifest, source, comm, [](auto, auto) {}).written;
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
    std::vector<std::uint8_t> wrong(1600, 7);
    writer.write(3, wrong, {});
    CHECK(writer.has(3, scratch));
    CHECK_FALSE(writer.has(4, scratch));
  }
  // The pixels of image 3 change behind its checksum: it must be made again.
  {
    std::fstream file(folder / ".x.pack.partial", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto size = static_cast<std::int64_t>(file.tellg());
    file.seekp(size - static_cast<std::int64_t>(c.manifest.size() - 3) * 1600);
    file.put('x');
  }
  CHECK_FALSE(PackWriter(path, shape).has(3, scratch));
  PackJob job;
  job.out = path;
  job.rows = c.rows;
  job.preprocessing = kInput;
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

TEST_CASE("a changed byte of any container is named, and only that image is lost") {
  auto& c = containers();
  for (const char* kind : {"tar", "tar.gz", "tfrecord", "pack"}) {
    const ScratchFolder folder;
    fs::copy(c.places[kind], folder / fs::path(c.places[kind]).filename(),
             fs::copy_options::recursive);
    c.open(kind);  // index files exist now
    fs::copy(c.places[kind] + (std::string(kind) == "tar" ? ".index" : ""),
             folder / (fs::path(c.places[kind]).filename().string() +
                       (std::string(kind) == "tar" ? ".index" : "")),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const std::string place = (folder / fs::path(c.places[kind]).filename()).string();
    Stores stores;
    const ImageIndex index = ImageIndex::scan(c.manifest, c.rows, {place}, stores);
    const ImageLocation& victim = index.location(5);
    const std::string path = index.containers()[victim.container].path;
    std::uint64_t at = victim.entry.offset + victim.entry.length / 2 + 20;
    if (std::string(kind) == "tar.gz") at = victim.entry.offset + victim.entry.stored / 2;
    if (std::string(kind) == "pack") at = fs::file_size(path) - 1600 * (c.rows.size() - 5) + 100;
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
      const std::string error = error_of<DataError>([&] { source.fetch(row, fetched); });
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

TEST_CASE("a pack of another size or resize is refused") {
  auto& c = containers();
  const ImageSource source = c.open("pack");
  CHECK(error_of<ConfigError>([&] {
          ImageReader(source, {48, 32, ResizeKind::kAntialias, 1000}, Augmentation::none(), 1);
        }).find("holds images of 40 pixels (antialias)") != std::string::npos);
  CHECK_FALSE(error_of<ConfigError>([&] {
                ImageReader(source, {40, 32, ResizeKind::kArea, 1000}, Augmentation::none(), 1);
              }).empty());
}

TEST_CASE("a pack is no source of random resized crops") {
  auto& c = containers();
  const Augmentation cropped{.random_resized_crop = true};
  const ImageSource pack = c.open("pack"), tar = c.open("tar");
  CHECK(error_of<ConfigError>([&] {
          ImageReader(pack, kInput, cropped, 1);
        }).find("random_resized_crop") != std::string::npos);
  ImageReader(tar, kInput, cropped, 1);
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
  CHECK(error_of<DataError>([&] { stale.fetch(0, fetched); }).find("another record") !=
        std::string::npos);
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
  CHECK_FALSE(error_of<DataError>([&] { same_time.fetch(0, fetched); }).empty());
}

TEST_CASE("one pack at a time writes to a place") {
  auto& c = containers();
  const ImageSource source = c.open("folder");
  const ScratchFolder folder;
  PackJob job;
  job.rows = c.rows;
  job.preprocessing = kInput;
  const auto comm = solo_communicator();
  {
    const auto pixels = FileLock::try_take(folder / ".x.pack.lock");
    job.out = (folder / "x.pack").string();
    CHECK(error_of<CheckpointError>([&] {
            write_pixel_pack(job, c.manifest, source, *comm, [](auto, auto) {});
          }).find("[pack] " + job.out + ": another pack writes there now") == 0);
    fs::create_directory(folder / "records");
    const auto records = FileLock::try_take(folder / "records/.train.lock");
    job.out = (folder / "records").string();
    CHECK(error_of<CheckpointError>([&] {
            write_records(job, c.manifest, source, *comm, [](auto, auto) {});
          }).find("[pack] " + job.out + ": another pack writes there now") == 0);
  }
  write_records(job, c.manifest, source, *comm, [](auto, auto) {});
  CHECK_FALSE(fs::exists(folder / "records/.train.lock"));
}

TEST_CASE("a pack's header is not believed: no memory for names that are not there") {
  auto& c = containers();
  std::vector<std::byte> bytes;
  read_bytes(c.places["pack"], bytes);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::uint32_t length = 0;
  std::memcpy(&length, &text[8], 4);
  std::string json = text.substr(16, length);
  const std::string key = "\"names_bytes\":";
  const auto at = json.find(key) + key.size();
  json.replace(at, json.find(',', at) - at, "4294967296");
  const auto size = static_cast<std::uint32_t>(json.size());
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(json)));
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

TEST_CASE("staging copies once per node, checks what is there and mends it") {
  auto& c = containers();
  const ScratchFolder folder;
  const ImageIndex index = ImageIndex::scan(c.manifest, c.rows, {c.places["pack"]}, c.stores);
  std::array<std::string, 3> copies;
  ThreadWorld(3).run([&](Communicator& comm) {
    copies[static_cast<std::size_t>(comm.rank())] =
        staged(index, {StageChoice::parse(folder.path().string())}, c.stores, comm)
            .containers()[0]
            .path;
  });
  const std::string copy = copies[0];
  CHECK((copies[1] == copy && copies[2] == copy));
  CHECK(copy.starts_with(folder.path().string()));
  std::vector<std::byte> bytes, wanted;
  read_bytes(c.places["pack"], wanted);
  read_bytes(copy, bytes);
  CHECK(bytes == wanted);
  const auto first_written = fs::last_write_time(copy);
  const auto comm = solo_communicator();
  staged(index, {StageChoice::parse(folder.path().string())}, c.stores, *comm);
  CHECK(fs::last_write_time(copy) == first_written);
  {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.put('!');
  }
  staged(index, {StageChoice::parse(folder.path().string())}, c.stores, *comm);
  read_bytes(copy, bytes);
  CHECK(bytes == wanted);
  CHECK(staged(index, {StageChoice::parse("off")}, c.stores, *comm) == index);
  CHECK(staged(index, {StageChoice::parse("auto")}, c.stores, *comm) ==
        index);  // it lies on a local disk already
  CHECK(error_of<DataError>([&] {
          staged(index, {StageChoice::parse("/proc/nowhere")}, c.stores, *comm);
        }).find("/proc/nowhere") != std::string::npos);
}
