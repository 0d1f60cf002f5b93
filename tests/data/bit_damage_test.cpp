// Every bit of what a run reads, flipped one at a time, and every length it can
// be cut to: noticed, or without effect. By default each N-th; with
// CHEXNET_LONG=1 all of them, and with $CHEXNET_FIGURES a line of JSON of each
// kind (tests/stress/checkpoint_damage_test.py).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/pack_job.hpp"
#include "chexnet/train/checkpoint/checkpoint_store.hpp"
#include "chexnet/train/run/train_state.hpp"
#include "data/staged_copy.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/long_tests.hpp"
#include "support/phantom_set.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// The outcome of one damage.
enum class Outcome {
  kNoticed,   // an error, or made anew, before a byte of it was used
  kPicture,   // the picture's checksum noticed it
  kNoEffect,  // in bytes that nobody reads: all is as it was
  kMissed
};

struct Seen {
  Outcome outcome = Outcome::kMissed;
  std::string message;  // of kNoticed and kPicture; empty: made anew
};
using Look = std::function<Seen()>;

struct Figures {
  uint64_t tried = 0, noticed = 0, picture = 0, no_effect = 0;
  uint64_t with_file = 0, with_offset = 0;
  std::vector<uint64_t> missed;  // bit or length

  void add(const Seen& seen, const std::string& file, uint64_t at) {
    ++tried;
    noticed += seen.outcome == Outcome::kNoticed ? 1 : 0;
    picture += seen.outcome == Outcome::kPicture ? 1 : 0;
    no_effect += seen.outcome == Outcome::kNoEffect ? 1 : 0;
    if (seen.outcome == Outcome::kMissed) missed.push_back(at);
    with_file += seen.message.find(file) != std::string::npos ? 1 : 0;
    with_offset += seen.message.find(" at byte ") != std::string::npos ? 1 : 0;
  }
};

void report(const std::string& what, const std::string& how, uint64_t bytes,
            const Figures& f) {
  const nlohmann::json line = {
      {"what", what},
      {"how", how},
      {"bytes", bytes},
      {"tried", f.tried},
      {"noticed", f.noticed},
      {"by_the_picture", f.picture},
      {"no_effect", f.no_effect},
      {"names_file", f.with_file},
      {"names_offset", f.with_offset},
      {"missed", f.missed.size()},
      {"first_missed",
       std::vector<uint64_t>(
           f.missed.begin(),
           f.missed.begin() +
               static_cast<ptrdiff_t>(std::min<size_t>(f.missed.size(), 20)))}};
  write_figures(line);
  INFO(line.dump());
  CHECK(f.missed.empty());
  CHECK(f.tried == f.noticed + f.picture + f.no_effect);
}

// A file whose bytes are changed in place, with the time of change it had.
class Victim {
 public:
  explicit Victim(const fs::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    REQUIRE(fd_ >= 0);
    read_bytes(path.string(), good_);
    struct stat info {};
    REQUIRE(::fstat(fd_, &info) == 0);
    times_[0] = info.st_atim;
    times_[1] = info.st_mtim;
  }
  ~Victim() { ::close(fd_); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  uint64_t size() const { return good_.size(); }
  std::string name() const { return path_.string(); }
  void flip(uint64_t bit) { put(bit / 8, good_[bit / 8] ^ mask(bit)); }
  void mend(uint64_t bit) { put(bit / 8, good_[bit / 8]); }
  void cut(uint64_t length) {
    REQUIRE(::ftruncate(fd_, static_cast<off_t>(length)) == 0);
    ::futimens(fd_, times_);
  }
  void lengthen(uint64_t from) {
    const auto rest = std::span(good_).subspan(from);
    REQUIRE(::pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(from)) ==
            static_cast<ssize_t>(rest.size()));
    ::futimens(fd_, times_);
  }

 private:
  static std::byte mask(uint64_t bit) {
    return static_cast<std::byte>(1u << (bit % 8));
  }
  void put(uint64_t at, std::byte byte) {
    REQUIRE(::pwrite(fd_, &byte, 1, static_cast<off_t>(at)) == 1);
    ::futimens(fd_, times_);
  }
  fs::path path_;
  int fd_;
  std::vector<std::byte> good_;
  timespec times_[2]{};
};

// About `few` positions of `all`, or all of them in the long form.
uint64_t stride(uint64_t all, uint64_t few) {
  if (is_long()) return 1;
  const uint64_t step = all / few + 1;
  return step + (step % 8 == 0 ? 1 : 0);  // not the same bit of each byte
}

void flip_all(const std::string& what, const fs::path& path, const Look& look,
              uint64_t few = 400) {
  Victim victim(path);
  REQUIRE(look().outcome == Outcome::kNoEffect);
  Figures figures;
  const uint64_t bits = 8 * victim.size();
  for (uint64_t bit = 0; bit < bits; bit += stride(bits, few)) {
    victim.flip(bit);
    figures.add(look(), victim.name(), bit);
    victim.mend(bit);
  }
  REQUIRE(look().outcome == Outcome::kNoEffect);
  report(what, "flipped bits", victim.size(), figures);
}

void cut_all(const std::string& what, const fs::path& path, const Look& look,
             uint64_t few = 200) {
  Victim victim(path);
  Figures figures;
  for (uint64_t length = 0; length < victim.size();
       length += stride(victim.size(), few)) {
    victim.cut(length);
    figures.add(look(), victim.name(), length);
    victim.lengthen(length);
  }
  REQUIRE(look().outcome == Outcome::kNoEffect);
  report(what, "cut off", victim.size(), figures);
}

// Warnings by the thousand say nothing here.
class QuietErrors {
 public:
  QuietErrors() : kept_(::dup(2)) {
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nothing, 2);
    ::close(nothing);
  }
  ~QuietErrors() {
    ::dup2(kept_, 2);
    ::close(kept_);
  }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  int kept_;
};

// A few phantoms, in every container.
struct Small {
  ScratchFolder folder;
  Stores stores;
  Manifest manifest;
  std::vector<uint32_t> rows;
  std::string pack, tar, gz, shards;

  explicit Small(int images = 4, int side = 32) {
    manifest = draw_phantom_set(folder / "set", images, side);
    rows = all_rows(manifest);
    const std::string out = folder.path().string();
    tar = out + "/a.tar";
    gz = out + "/b.tar.gz";
    pack = out + "/c.pack";
    shards = out + "/records";
    REQUIRE(std::system(("cd " + out + "/set && tar cf " + tar +
                         " images && tar czf " + gz + " images")
                            .c_str()) == 0);
    PackJob job;
    job.rows = rows;
    job.preprocessing = {side, side, ResizeKind::kAntialias};
    job.per_shard = static_cast<size_t>(images) / 2;
    job.threads = 1;
    const auto comm = solo_communicator();
    const ImageSource source(scan(out + "/set/images"), stores);
    job.out = pack;
    write_pixel_pack(job, manifest, source, *comm, [](auto, auto) {});
    job.out = shards;
    write_records(job, manifest, source, *comm, [](auto, auto) {});
  }
  ImageIndex scan(const std::string& place) {
    return ImageIndex::scan(manifest, rows, {place}, stores);
  }
  fs::path first_shard() const {
    return fs::path(shards) / "train-00000-of-00002";
  }
};

struct Picture {
  std::vector<std::byte> stored;
  GrayImage decoded;
};

// As a run reads: indexes the path (or trusts its index), fetches every image,
// and decodes it where its bytes have changed.
class WholeSet {
 public:
  WholeSet(Small& set, std::string place, bool keeps_index)
      : set_(set), place_(std::move(place)), keeps_index_(keeps_index) {
    const ImageSource source(set_.scan(place_), set_.stores);
    for (const auto row : set_.rows) {
      FetchedImage fetched;
      source.fetch(row, fetched);
      Picture& picture = good_.emplace_back();
      picture.stored.assign(fetched.bytes.begin(), fetched.bytes.end());
      decode_fetched(fetched, {}, picture.decoded);
    }
  }

  Seen look() {
    const QuietErrors quiet;
    if (!keeps_index_) remove_indices();
    Stores stores;  // other descriptors
    std::string of_picture;
    bool differs = false;
    try {
      const ImageSource source(
          ImageIndex::scan(set_.manifest, set_.rows, {place_}, stores), stores);
      for (const auto row : set_.rows) {
        FetchedImage fetched;
        source.fetch(row, fetched);
        const bool same = std::ranges::equal(fetched.bytes, good_[row].stored);
        if (!same) differs |= !decodes_alike(fetched, row, of_picture);
      }
    } catch (const Error& e) {
      return {Outcome::kNoticed, e.what()};
    }
    if (!of_picture.empty()) return {Outcome::kPicture, of_picture};
    return {differs ? Outcome::kMissed : Outcome::kNoEffect, ""};
  }

 private:
  bool decodes_alike(const FetchedImage& fetched, uint32_t row,
                     std::string& of_picture) const {
    try {
      GrayImage image;
      decode_fetched(fetched, {}, image);
      return image.contiguous() == good_[row].decoded.contiguous();
    } catch (const DataError& e) {
      of_picture = e.what();
      return true;
    }
  }
  void remove_indices() const {
    std::error_code ignored;
    fs::remove(place_ + ".index", ignored);
    if (!fs::is_directory(place_)) return;
    for (const auto& entry : fs::directory_iterator(place_))
      if (entry.path().extension() == ".index") fs::remove(entry.path());
  }
  Small& set_;
  std::string place_;
  bool keeps_index_;
  std::vector<Picture> good_;
};

void damage_container(const std::string& what, const fs::path& file, Small& set,
                      const std::string& place, bool keeps_index) {
  WholeSet whole(set, place, keeps_index);
  const Look look = [&] { return whole.look(); };
  flip_all(what, file, look);
  cut_all(what, file, look);
}

// A checkpoint with every kind of file and a state as a run writes it.
struct SmallCheckpoint {
  ScratchFolder folder;
  CheckpointStore store{folder / "c", 5};
  fs::path path = folder / "c/step-00000007";

  explicit SmallCheckpoint(size_t weights) {
    std::vector<float> values(weights);
    Random random(3, Purpose::kTest, 1);
    for (float& value : values) value = static_cast<float>(random.below(1000));
    const auto bytes = std::as_bytes(std::span(values));
    TrainState state;
    state.step = 7;
    state.position = 56;
    state.config = "run:\n  name: small\n";
    state.best = 0.75;
    store.save(7, state.to_json(), [&](const fs::path& to) {
      const auto count = static_cast<int64_t>(weights);
      write_safetensors(to / "model.safetensors",
                        {{"w", ElementType::kF32, {count}, bytes}}, {});
      write_safetensors(to / "optimizer.safetensors",
                        {{"m", ElementType::kF32, {count}, bytes}}, {});
    });
    good_ = all_bytes();
  }
  // A resume reads every byte, so none may change unnoticed.
  Seen look() const {
    const std::string wrong = CheckpointStore::problem(path);
    if (!wrong.empty()) return {Outcome::kNoticed, (path / wrong).string()};
    return {all_bytes() == good_ ? Outcome::kNoEffect : Outcome::kMissed, ""};
  }

 private:
  std::string all_bytes() const {
    return read_text(path / "model.safetensors") +
           read_text(path / "optimizer.safetensors") +
           read_text(path / "state.json");
  }
  std::string good_;
};

}  // namespace

TEST_CASE("damage of a checkpoint is noticed, whichever bit it is",
          "[damage]") {
  const SmallCheckpoint checkpoint(200);
  const Look look = [&] { return checkpoint.look(); };
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    flip_all(name, checkpoint.path / name, look);
    cut_all(name, checkpoint.path / name, look);
  }
}

TEST_CASE("damage of a pack is noticed or without effect", "[damage]") {
  Small set;
  damage_container("pack", set.pack, set, set.pack, true);
}

TEST_CASE("damage of a TFRecord shard is noticed, with an index and without",
          "[damage]") {
  Small set;
  damage_container("TFRecord shard with its index", set.first_shard(), set,
                   set.shards, true);
  damage_container("TFRecord shard without an index", set.first_shard(), set,
                   set.shards, false);
}

TEST_CASE("damage of an archive is noticed or without effect", "[damage]") {
  Small set;
  damage_container("tar with its index", set.tar, set, set.tar, true);
  damage_container("tar without an index", set.tar, set, set.tar, false);
  damage_container("tar.gz with its index", set.gz, set, set.gz, true);
  damage_container("tar.gz without an index", set.gz, set, set.gz, false);
}

TEST_CASE("a damaged index is made anew", "[damage]") {
  Small set;
  for (const std::string& place : {set.tar, set.gz}) {
    const ImageIndex good = set.scan(place);
    const fs::path path = place + ".index";
    const std::string text = read_text(path);
    const Look look = [&]() -> Seen {
      const QuietErrors quiet;
      const std::string before = read_text(path);
      const bool same = set.scan(place) == good;
      const bool anew = before != text && read_text(path) == text;
      write_atomically(path, before, 0600);  // as it was, in the same file
      if (!same) return {Outcome::kMissed, ""};
      return {anew ? Outcome::kNoticed : Outcome::kNoEffect, ""};
    };
    // Each look() may replace the file, so all of it is written each time.
    Figures flips, cuts;
    const uint64_t bits = 8 * text.size();
    for (uint64_t bit = 0; bit < bits; bit += stride(bits, 150)) {
      std::string bad = text;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      write_atomically(path, bad, 0600);
      flips.add(look(), path.string(), bit);
    }
    for (size_t length = 0; length < text.size();
         length += stride(text.size(), 50)) {
      write_atomically(path, text.substr(0, length), 0600);
      cuts.add(look(), path.string(), length);
    }
    const std::string what = "index of " + place.substr(place.rfind('/') + 1);
    report(what, "flipped bits", text.size(), flips);
    report(what, "cut off", text.size(), cuts);
    write_atomically(path, text, 0600);
  }
}

TEST_CASE("a staged copy knows what is not as it was copied", "[damage]") {
  Small set;
  const ScratchFolder node;
  const ImageIndex index = set.scan(set.pack);
  const Container& source = index.containers().front();
  StagedCopy copy(node.path(), source);
  copy.check([] {});
  copy.complete(set.stores.of(set.pack), [](uint64_t) {});
  const Look look = [&]() -> Seen {
    StagedCopy again(node.path(), source);
    const bool is_whole = again.check([] {}) == 0;
    if (!is_whole) return {Outcome::kNoticed, ""};
    std::vector<std::byte> there, wanted;
    read_bytes(again.path().string(), there);
    read_bytes(set.pack, wanted);
    return {there == wanted ? Outcome::kNoEffect : Outcome::kMissed, ""};
  };
  flip_all("staged copy", copy.path(), look);
  cut_all("staged copy", copy.path(), look);
  const fs::path sums = copy.path().string() + ".sums";
  flip_all("sums of a staged copy", sums, look);
  cut_all("sums of a staged copy", sums, look);
}

TEST_CASE("random damage of files of real sizes is noticed", "[damage]") {
  const int flips = is_long() ? 45'000 : 10;
  Random random(7, Purpose::kTest, 2);
  const auto some = [&](const std::string& what, const fs::path& path,
                        const Look& look, int count) {
    Victim victim(path);
    REQUIRE(look().outcome == Outcome::kNoEffect);
    Figures figures;
    for (int i = 0; i < count; ++i) {
      const uint64_t byte = random.below(static_cast<uint32_t>(victim.size()));
      const uint64_t bit = 8 * byte + random.below(8);
      victim.flip(bit);
      figures.add(look(), victim.name(), bit);
      victim.mend(bit);
    }
    report(what, "random bits", victim.size(), figures);
  };
  const SmallCheckpoint checkpoint(is_long() ? 7'000'000 : 70'000);
  some(
      "model.safetensors, real size", checkpoint.path / "model.safetensors",
      [&] { return checkpoint.look(); }, flips / 4);

  Small set(is_long() ? 100 : 8, is_long() ? 256 : 64);
  WholeSet pack(set, set.pack, true), tar(set, set.tar, true);
  some(
      "pack, real size", set.pack, [&] { return pack.look(); }, flips);
  some(
      "tar with its index, real size", set.tar, [&] { return tar.look(); },
      flips);
}
