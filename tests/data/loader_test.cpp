#include "chexnet/data/loader.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/data/phantom.hpp"
#include "chexnet/data/split.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/phantom_set.hpp"

using namespace chexnet;

namespace {

// A small phantom set, drawn once.
struct Phantom {
  ScratchFolder folder;
  Manifest manifest;
  std::unique_ptr<ImageSource> source;
  Stores stores;
  std::vector<uint32_t> rows;
  Phantom() {
    manifest = draw_phantom_set(folder / "set", 23, 48);
    rows = all_rows(manifest);
    source = std::make_unique<ImageSource>(
        ImageIndex::scan(manifest, rows, {(folder / "set/images").string()},
                         stores),
        stores);
  }
};

Phantom& phantom() {
  static Phantom set;
  return set;
}

constexpr Preprocessing kLoaderInput{40, 32, ResizeKind::kAntialias};
const Augmentation kAllAugmentations{
    TrainCrop::kRandom, true, 0.8, 5, 0.1, 0.2};

struct Content {
  std::vector<uint8_t> images;
  std::vector<float> labels;
  bool operator==(const Content& other) const {
    const auto same = [](float a, float b) {
      return a == b || (std::isnan(a) && std::isnan(b));
    };
    return images == other.images &&
           std::ranges::equal(labels, other.labels, same);
  }
};

// The global batches [first, first + steps) of the training order, made by
// `ranks` ranks with `workers` threads each.
std::map<uint64_t, Content> samples(int ranks, int workers,
                                    uint64_t first_position, int steps,
                                    int batch = 8) {
  auto& p = phantom();
  std::map<uint64_t, Content> out;
  const ImageReader reader(*p.source, kLoaderInput, kAllAugmentations, 5);
  for (int rank = 0; rank < ranks; ++rank) {
    const TrainSampler sampler(p.rows, {.seed = 5,
                                        .batch = static_cast<uint64_t>(batch),
                                        .first_position = first_position,
                                        .rank = rank,
                                        .world_size = ranks});
    Loader loader(p.manifest, reader, sampler, {batch / ranks, workers, 2});
    for (int s = 0; s < steps; ++s) {
      const Batch& b = loader.next();
      for (size_t i = 0; i < b.samples.size(); ++i) {
        const size_t pixels = 32 * 32, k = p.manifest.finding_count();
        const Content content{
            {b.images.begin() + static_cast<ptrdiff_t>(i * pixels),
             b.images.begin() + static_cast<ptrdiff_t>((i + 1) * pixels)},
            {b.labels.begin() + static_cast<ptrdiff_t>(i * k),
             b.labels.begin() + static_cast<ptrdiff_t>((i + 1) * k)}};
        REQUIRE(out.emplace(b.samples[i].position, content).second);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("batches are bit-identical for any number of workers and ranks") {
  const auto reference = samples(1, 0, 0, 7);
  REQUIRE(reference.size() == 56);
  CHECK(reference.begin()->first == 0);
  CHECK(reference.rbegin()->first == 55);
  for (const int workers : {1, 2, 5})
    CHECK(samples(1, workers, 0, 7) == reference);
  for (const int ranks : {2, 4}) CHECK(samples(ranks, 2, 0, 7) == reference);
}

TEST_CASE(
    "a resume on another number of ranks sees each position exactly once") {
  const auto reference = samples(1, 0, 0, 9);
  auto pieces = samples(1, 1, 0, 2);
  pieces.merge(samples(2, 2, 16, 3));
  pieces.merge(samples(4, 1, 40, 4));
  CHECK(pieces == reference);
}

TEST_CASE("each epoch is a permutation of the split, and no two are alike") {
  std::vector<uint32_t> rows(101);
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = 1000 + i;
  const TrainSampler sampler(rows, {.seed = 3, .batch = 4});
  std::vector<std::vector<uint32_t>> epochs;
  for (uint64_t e = 0; e < 5; ++e) {
    std::vector<uint32_t> order;
    for (uint64_t i = 0; i < rows.size(); ++i)
      order.push_back(sampler.row_at(e * rows.size() + i));
    for (const auto& before : epochs) CHECK(order != before);
    epochs.push_back(order);
    std::ranges::sort(order);
    CHECK(order == rows);
  }
  const TrainSampler kept(rows, {.seed = 3, .keep_order = true, .batch = 4});
  for (uint64_t i = 0; i < 300; ++i)
    CHECK(kept.row_at(i) == rows[i % rows.size()]);
}

TEST_CASE(
    "evaluation covers each row once on any number of ranks, the rest is "
    "padding") {
  std::vector<uint32_t> rows(10);
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  for (const int ranks : {1, 2, 3, 4}) {
    std::multiset<uint32_t> seen;
    const int tickets = (10 + ranks - 1) / ranks;
    for (int rank = 0; rank < ranks; ++rank)
      for (int t = 0; t < tickets + 2; ++t) {
        const Sample s =
            EvalSampler(rows, rank, ranks).at(static_cast<uint64_t>(t));
        if (!s.padding) seen.insert(s.row);
      }
    CHECK(seen == std::multiset<uint32_t>(rows.begin(), rows.end()));
  }
}

TEST_CASE(
    "a damaged image is reported with its batch and counts as not labeled") {
  auto& p = phantom();
  const ScratchFolder folder;
  std::filesystem::copy(p.folder / "set/images", folder / "images");
  const std::string victim = p.manifest.images[3];
  folder.write("images/" + victim, "no image");
  Stores stores;
  const ImageSource source(
      ImageIndex::scan(p.manifest, p.rows, {(folder / "images").string()},
                       stores),
      stores);
  const ImageReader reader(source, kLoaderInput, Augmentation::none(), 1);
  for (const int workers : {0, 3}) {
    const EvalSampler sampler(p.rows, 0, 1);
    Loader loader(p.manifest, reader, sampler, {23, workers, 1});
    const Batch& batch = loader.next();
    REQUIRE(batch.damaged == 1);
    CHECK(batch.errors[3].find(victim) != std::string::npos);
    CHECK(batch.first_error() == batch.errors[3]);
    for (size_t i = 0; i < 23; ++i)
      CHECK(std::isnan(batch.labels[i * 14]) == (i == 3));
    CHECK(loader.next().first_error().empty());  // all padding
  }
}

TEST_CASE("what a worker cannot handle reaches the consumer") {
  class Failing final : public Sampler {
    Sample at(uint64_t ticket) const override {
      if (ticket == 5) throw std::runtime_error("no sample 5");
      return {0, ticket, true};
    }
  };
  auto& p = phantom();
  const ImageReader reader(*p.source, kLoaderInput, Augmentation::none(), 1);
  const Failing sampler;
  Loader loader(p.manifest, reader, sampler, {4, 2, 2});
  CHECK(error_of<std::runtime_error>([&] {
          for (int i = 0; i < 3; ++i) loader.next();
        }) == "no sample 5");
}

TEST_CASE(
    "the spans of loader threads are recorded in their own lanes, while a "
    "recording is there") {
  auto& p = phantom();
  const ImageReader reader(*p.source, kLoaderInput, Augmentation::none(), 1);
  const TrainSampler sampler(p.rows, {.batch = 4});
  constexpr int kWorkers = 2, kReaders = 3;
  for (const int readers : {0, kReaders}) {
    INFO(readers << " readers");
    Loader loader(p.manifest, reader, sampler, {4, kWorkers, 2, readers});
    const auto before = std::make_shared<Recording>(1000);
    loader.record(before);
    for (int i = 0; i < 8; ++i) loader.next();
    loader.record(nullptr);
    const auto events = before->events();
    const auto of = [&](Track track) {
      return std::ranges::count_if(
          events, [&](const auto& e) { return e.track == track; });
    };
    // Not of three batches that may have begun before the recording, nor of
    // what a worker is about to add.
    CHECK(of(Track::kLoader) >= (8 - 3) * 4 - kWorkers);
    CHECK((of(Track::kReader) > 0) == (readers > 0));
    for (const auto& e : events) {
      CHECK(e.lane >= 0);
      CHECK(e.lane < (e.track == Track::kLoader ? kWorkers : kReaders));
      CHECK(e.end_s >= e.begin_s);
    }
    // Each thread ends one more span at most: it took up its image before.
    for (int i = 0; i < 8; ++i) loader.next();
    CHECK(before->events().size() <= events.size() + kWorkers + readers);
  }
}

TEST_CASE("loading is the work of all workers by their number") {
  auto& p = phantom();
  const ImageReader reader(*p.source, kLoaderInput, Augmentation::none(), 1);
  const TrainSampler sampler(p.rows, {.batch = 4});
  Loader in_next(p.manifest, reader, sampler, {4, 0, 0});
  for (int i = 0; i < 5; ++i) in_next.next();
  // Without workers the step waits for all of it.
  CHECK(in_next.stats().loading_s > 0);
  CHECK(in_next.stats().loading_s <= in_next.stats().wait_s);
  CHECK(in_next.stats().exposed_s == Approx(in_next.stats().loading_s));

  // The sum alone would be longer than the time, as all are busy.
  const double start = now_s();
  Loader loader(p.manifest, reader, sampler, {4, 4, 3});
  for (int i = 0; i < 100; ++i) loader.next();
  CHECK(loader.stats().loading_s > 0);
  CHECK(loader.stats().exposed_s <=
        std::min(loader.stats().loading_s, loader.stats().wait_s));
  CHECK(loader.stats().loading_s <= now_s() - start);
}

TEST_CASE("a loader that is not read to its end stops") {
  auto& p = phantom();
  const ImageReader reader(*p.source, kLoaderInput, Augmentation::none(), 1);
  const TrainSampler sampler(p.rows, {.batch = 4});
  for (int i = 0; i < 20; ++i) {
    Loader loader(p.manifest, reader, sampler, {4, 3, 2});
    if (i % 2 == 0) CHECK(loader.next().size == 4);
  }
  SUCCEED("returned");
}

TEST_CASE(
    "augmentation depends on seed and position alone, and each switch does "
    "something") {
  auto& p = phantom();
  ImageReader::Scratch scratch;
  const auto pixels = [&](Augmentation augmentation, uint64_t seed,
                          uint64_t position) {
    std::vector<uint8_t> out(32 * 32);
    ImageReader(*p.source, kLoaderInput, augmentation, seed)
        .read({4, position, false}, out.data(), scratch);
    return out;
  };
  const auto plain = pixels(Augmentation::none(), 1, 1);
  CHECK(plain == pixels(Augmentation::none(), 2, 9));
  CHECK(pixels(kAllAugmentations, 1, 1) == pixels(kAllAugmentations, 1, 1));
  CHECK(pixels(kAllAugmentations, 1, 1) != pixels(kAllAugmentations, 1, 2));
  CHECK(pixels(kAllAugmentations, 1, 1) != pixels(kAllAugmentations, 2, 1));
  const std::vector<Augmentation> each = {
      {.crop = TrainCrop::kRandom},
      {.crop = TrainCrop::kResized, .crop_area_min = 0.3},
      {.flip = true},
      {.rotate_deg = 10},
      {.zoom = 0.2},
      {.contrast = 0.3}};
  for (size_t i = 0; i < each.size(); ++i) {
    INFO(i);
    int changed = 0;
    for (uint64_t position = 0; position < 12; ++position)
      changed += pixels(each[i], 1, position) != plain ? 1 : 0;
    CHECK(changed >= 3);
  }
  // A flip is a mirror image and nothing else.
  for (uint64_t position = 0; position < 12; ++position) {
    auto flipped = pixels({.flip = true}, 1, position);
    if (flipped == plain) continue;
    for (size_t row = 0; row < 32; ++row)
      std::reverse(flipped.begin() + static_cast<ptrdiff_t>(row * 32),
                   flipped.begin() + static_cast<ptrdiff_t>((row + 1) * 32));
    CHECK(flipped == plain);
  }
}

TEST_CASE(
    "evaluation sees the center of the resized image as torchvision cuts it") {
  auto& p = phantom();
  const auto pixels = [&](int crop) {
    const ImageReader reader(*p.source, {35, crop, ResizeKind::kAntialias},
                             Augmentation::none(), 5);
    std::vector<uint8_t> out(static_cast<size_t>(crop * crop));
    ImageReader::Scratch scratch;
    reader.read({.row = p.rows[0]}, out.data(), scratch);
    return out;
  };
  const auto whole = pixels(35), center = pixels(32);
  for (size_t y = 0; y < 32; ++y) {
    INFO("row " << y);
    CHECK(std::equal(center.begin() + static_cast<ptrdiff_t>(32 * y),
                     center.begin() + static_cast<ptrdiff_t>(32 * (y + 1)),
                     whole.begin() + static_cast<ptrdiff_t>(35 * (y + 2) + 2)));
  }
}

TEST_CASE("a phantom set is a function of its seed, and says what it is") {
  const PhantomImage a = draw_phantom(1, 5, 0, 64),
                     b = draw_phantom(1, 5, 0, 64),
                     c = draw_phantom(2, 5, 0, 64);
  CHECK(a.pixels == b.pixels);
  CHECK(a.pixels != c.pixels);
  auto& p = phantom();
  CHECK(p.manifest.size() == 23);
  CHECK(std::filesystem::exists(p.folder / "set/README.txt"));
  PhantomOptions again;
  again.out = p.folder / "set";
  CHECK(error_of<CheckpointError>([&] {
          write_phantom_set(again, [](int) {});
        }).find("holds a data set already") != std::string::npos);
}
