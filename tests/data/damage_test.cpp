// Damage, absence and outage of images: which images are left out, which end
// the reading, and how many are too many.
#include <chrono>
#include <thread>

#include "chexnet/core/error.hpp"
#include "chexnet/data/damage_counter.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/pack_job.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/phantom_set.hpp"
#include "support/thread_world.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

constexpr Preprocessing kInput{40, 32, ResizeKind::kAntialias};

// A separate phantom set, which tests damage.
struct DamagedSet {
  ScratchFolder folder;
  Manifest manifest;
  std::vector<uint32_t> rows;
  std::unique_ptr<Stores> stores;
  std::unique_ptr<ImageSource> source;

  explicit DamagedSet(double retry_s = 0)
      : stores(std::make_unique<Stores>(S3Options{}, retry_s)) {
    manifest = draw_phantom_set(folder / "set", 12, 48);
    rows = all_rows(manifest);
    open((folder / "set/images").string());
  }
  void open(const std::string& place) {
    source = std::make_unique<ImageSource>(
        ImageIndex::scan(manifest, rows, {place}, *stores), *stores);
  }
  void damage(uint32_t row) const {
    folder.write("set/images/" + manifest.images[row], "no image");
  }
  void take_away() const { fs::rename(folder / "set/images", folder / "away"); }
};

DamagePolicy skip(double limit) { return {true, limit}; }

}  // namespace

TEST_CASE(
    "an outage ends the loader, however it reads; it is no damaged image") {
  const DamagedSet set(0.05);
  const ImageReader reader(*set.source, kInput, Augmentation::none(), 1);
  const EvalSampler sampler(set.rows, 0, 1);
  set.take_away();
  for (const auto& [workers, readers] :
       {std::pair{0, 0}, {3, 0}, {0, 4}, {2, 4}}) {
    INFO(workers << " workers, " << readers << " readers");
    Loader loader(set.manifest, reader, sampler, {4, workers, 2, readers});
    CHECK_THROWS_AS(loader.next(), OutageError);
  }
}

TEST_CASE("batches are whole when the images come back in time") {
  const DamagedSet set(3600);
  const ImageReader reader(*set.source, kInput, Augmentation::none(), 1);
  const EvalSampler sampler(set.rows, 0, 1);
  set.take_away();
  Loader loader(set.manifest, reader, sampler, {12, 2, 2, 3});
  const std::jthread mender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    fs::rename(set.folder / "away", set.folder / "set/images");
  });
  CHECK(loader.next().damaged == 0);
}

TEST_CASE("a loader stops without waiting for storage that does not answer") {
  const DamagedSet set(1e6);
  const ImageReader reader(*set.source, kInput, Augmentation::none(), 1);
  const EvalSampler sampler(set.rows, 0, 1);
  set.take_away();
  for (const int readers : {0, 4}) {
    const Loader loader(set.manifest, reader, sampler, {4, 2, 2, readers});
    // All of them are waiting now.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  SUCCEED("returned");
}

TEST_CASE("asked to stop, the consumer waits for no batch that is missing") {
  const DamagedSet set(1e6);
  const ImageReader reader(*set.source, kInput, Augmentation::none(), 1);
  const TrainSampler sampler(set.rows, {.seed = 5, .batch = 4});
  for (const int readers : {0, 4}) {
    Loader loader(set.manifest, reader, sampler, {4, 2, 1, readers});
    CHECK(loader.next_unless([] { return true; }) == nullptr);
    CHECK(loader.next_unless([] { return false; }) != nullptr);
    set.take_away();
    int asked = 0;
    const auto after_a_while = [&] { return ++asked == 3; };
    while (loader.next_unless(after_a_while) != nullptr) asked = 0;
    CHECK(asked == 3);
    fs::rename(set.folder / "away", set.folder / "set/images");
  }
}

TEST_CASE("an image that needs more memory than there is counts as damaged") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.tar", "content");
  Stores stores;
  Entry entry;
  entry.length = uint64_t{1} << 63;
  const ImageSource source(
      ImageIndex::of_found({{"a.png", {0, 0, entry}}},
                           {{ContainerKind::kTar, path, 7}}),
      stores);
  FetchedImage fetched;
  CHECK(error_of<DataError>([&] {
          source.fetch(0, fetched);
        }).find("needs more memory") != std::string::npos);
  CHECK(error_of<DataError>([&] {
          within_memory("x.png", [] { throw std::bad_alloc(); });
        }).find("x.png: needs more memory") != std::string::npos);
}

TEST_CASE("a share of the images may be damaged, and one in small sets") {
  CHECK(DamagePolicy{false, 0.5}.allowed(1000) == 0);
  CHECK(skip(0).allowed(1000) == 0);
  CHECK(skip(0.01).allowed(1000) == 10);
  CHECK(skip(0.01).allowed(999) == 9);
  CHECK(skip(0.01).allowed(40) == 1);
  CHECK(skip(1).allowed(40) == 40);
}

TEST_CASE("damage is counted by epoch, over all ranks") {
  using Count = DamageCounter::Count;
  const auto error = [](DamageCounter& counter, Count damaged,
                        uint64_t position) {
    return error_of<DataError>([&] { counter.add(damaged, position); });
  };
  SECTION("more than the limit in one epoch") {
    DamageCounter counter(skip(0.02), 100, 8);
    CHECK(error(counter, {1, 0}, 0).empty());
    CHECK(error(counter, {1, 0}, 8).empty());
    CHECK(error(counter, {1, 0}, 16)
              .find("epoch 1: 3 of 100 images are damaged, data.corrupt "
                    "(2.0 %) allows 2") != std::string::npos);
  }
  SECTION("the next epoch begins anew, with what the last batch had of it") {
    DamageCounter counter(skip(0.02), 100, 8);
    CHECK(error(counter, {2, 1}, 96).empty());
    CHECK(error(counter, {1, 0}, 104).empty());
    CHECK(error(counter, {2, 0}, 304).empty());
    CHECK(error(counter, {1, 0}, 312).find("epoch 4: 3 of 100") !=
          std::string::npos);
  }
  SECTION("a whole step") {
    DamageCounter counter(skip(1), 100, 8);
    CHECK(error(counter, {7, 0}, 0).empty());
    CHECK(
        error(counter, {5, 3}, 96).find("all 8 images of a step are damaged") !=
        std::string::npos);
  }
  SECTION("a batch knows which epoch an image stands in") {
    const DamageCounter counter(skip(1), 100, 4);
    Batch batch;
    batch.damaged = 3;
    for (const uint64_t position : {98, 99, 100, 101})
      batch.samples.push_back({0, position});
    batch.errors = {"damaged", "", "damaged", "damaged"};
    const Count count = counter.in(batch, 98);
    CHECK((count.this_epoch == 1 && count.next_epoch == 2));
  }
}

TEST_CASE("all ranks refuse the same damage, and name it") {
  std::atomic<int> refused = 0, accepted = 0;
  ThreadWorld(3).run([&](Communicator& comm) {
    const std::vector<std::string> own(
        static_cast<size_t>(comm.rank()),
        "of rank " + std::to_string(comm.rank()));
    if (count(accept_damage(skip(0.03), own, 100, "val", "", comm)) == 3)
      ++accepted;
    const auto text = error_of<DataError>(
        [&] { accept_damage(skip(0.02), own, 100, "val", "", comm); });
    if (text.find("[val] 3 of 100 images are damaged") == 0 &&
        text.ends_with("\n  of rank 1\n  of rank 2\n  of rank 2"))
      ++refused;
  });
  CHECK(accepted == 3);
  CHECK(refused == 3);
}

TEST_CASE("damage that only an index shows has the hint to index again") {
  const auto comm = solo_communicator();
  const auto refused = [&](const std::string& message) {
    return error_of<DataError>([&] {
      accept_damage(skip(0.01), {message, message}, 10, "test", "", *comm);
    });
  };
  DamagedSet set;
  const auto damage_of_row_0 = [&] {
    FetchedImage fetched;
    return error_of<DataError>([&] {
      set.source->fetch(0, fetched);
      GrayImage image;
      decode_fetched(fetched, {}, image);
    });
  };
  set.damage(0);
  CHECK(refused(damage_of_row_0()).find(".index") == std::string::npos);

  const std::string tar = (set.folder / "x.tar").string();
  const auto pack = [&] {
    return std::system(("cd '" + (set.folder / "set").string() +
                        "' && tar cf '" + tar +
                        "' --mtime=@0 images && touch -d @0 '" + tar + "'")
                           .c_str());
  };
  REQUIRE(pack() == 0);
  set.open(tar);
  set.folder.write("set/images/" + set.manifest.images[0], "new here");
  REQUIRE(pack() == 0);
  CHECK(refused(damage_of_row_0()).find("Delete its .index file") !=
        std::string::npos);
}

TEST_CASE("packs and records keep the place of an image that was left out") {
  DamagedSet set;
  set.damage(3);
  const auto comm = solo_communicator();
  PackJob job;
  job.rows = set.rows;
  job.preprocessing = kInput;
  const auto ignore = [](auto, auto) {};
  for (const bool pixels : {true, false}) {
    const auto write = pixels ? write_pixel_pack : write_records;
    const fs::path out = set.folder / (pixels ? "a.pack" : "records");
    set.open((set.folder / "set/images").string());
    job.out = out.string();
    job.damage = {};
    CHECK(error_of<DataError>([&] {
            write(job, set.manifest, *set.source, *comm, ignore);
          }).find("1 of 12 images are damaged; the rest is done and kept") !=
          std::string::npos);
    job.damage = skip(0.01);
    CHECK(write(job, set.manifest, *set.source, *comm, ignore).damaged == 1);
    set.open(out.string());
    const ImageReader reader(*set.source, kInput, Augmentation::none(), 1);
    const EvalSampler sampler(set.rows, 0, 1);
    Loader loader(set.manifest, reader, sampler, {12, 1, 1});
    const Batch& batch = loader.next();
    CHECK(batch.damaged == 1);
    CHECK_FALSE(batch.errors[3].empty());
  }
}

TEST_CASE("an outage ends a pack, which goes on afterwards") {
  DamagedSet set;
  const auto comm = solo_communicator();
  PackJob job;
  job.rows = set.rows;
  job.preprocessing = kInput;
  job.out = (set.folder / "a.pack").string();
  job.damage = skip(1);
  const auto ignore = [](auto, auto) {};
  const std::string last =
      (set.folder / "set/images" / set.manifest.images[11]).string();
  fs::rename(last, last + ".away");
  CHECK_THROWS_AS(
      write_pixel_pack(job, set.manifest, *set.source, *comm, ignore),
      OutageError);
  fs::rename(last + ".away", last);
  const PackResult result =
      write_pixel_pack(job, set.manifest, *set.source, *comm, ignore);
  CHECK((result.kept == 11 && result.written == 1 && result.damaged == 0));
}
