#include "chexnet/train/run/dataset.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/pack_job.hpp"
#include "support/catch.hpp"
#include "support/phantom_run.hpp"
#include "support/rank_results.hpp"
#include "train/run/shared_pictures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// A set whose splits are known while all images are there.
struct Incomplete {
  PhantomRun run{30};
  Splits whole;
  std::vector<std::string> names;  // [row]

  Incomplete() {
    run.config.data.val_fraction = 0.3;
    const Dataset all = load_dataset(run.config, *solo_communicator());
    whole = all.splits;
    names = all.manifest.images;
    for (const Split* split : {&whole.train, &whole.val, &whole.test})
      REQUIRE(split->rows.size() > 2);
  }
  void remove(const Split& split, size_t count) const {
    for (size_t i = 0; i < count; ++i)
      fs::remove(run.folder / ("set/images/" + names[split.rows[i]]));
  }
  void skip() { run.config.data.missing = OnMissing::kSkip; }
};

struct Left {
  std::vector<uint32_t> train, test;
  std::vector<size_t> missing;
  std::string sha256;
  bool operator==(const Left&) const = default;
};

Left left_in(const Dataset& dataset) {
  const Splits& s = dataset.splits;
  return {s.train.rows,
          s.test.rows,
          {dataset.missing_of("train"), dataset.missing_of("val"),
           dataset.missing_of("test")},
          s.test.sha256};
}

}  // namespace

TEST_CASE("images that are missing are refused with how to leave them out") {
  const Incomplete set;
  set.remove(set.whole.test, 2);
  const auto error = error_of<AbsentError>(
      [&] { load_dataset(set.run.config, *solo_communicator()); });
  CHECK(error.find("2 of 30 images are missing") != std::string::npos);
  CHECK(error.find("Data_Entry_2017.csv:") != std::string::npos);
  CHECK(error.find("data.missing=skip") != std::string::npos);
}

TEST_CASE("ranks that read different tables are told which") {
  const Incomplete set;
  Config other = set.run.config;
  const std::string table = read_text(other.data.manifest.path.front());
  const std::string changed = set.run.folder / "other.csv";
  write_atomically(
      changed, table.substr(0, table.find('|')) +
                   table.substr(table.find_first_of(",\n", table.find('|'))));
  other.data.manifest.path = {changed};
  const auto load_on = [&](const Config& of_rank_1) {
    ThreadWorld(2).run([&](Communicator& comm) {
      load_dataset(comm.rank() == 1 ? of_rank_1 : set.run.config, comm);
    });
  };
  const auto error = error_of<DataError>([&] { load_on(other); });
  CHECK(error.find("[data] rank 1 on ") == 0);
  CHECK(error.find("has read something else than rank 0") != std::string::npos);
  CHECK_NOTHROW(load_on(set.run.config));
}

TEST_CASE("data.missing=skip leaves missing images out on every rank alike") {
  Incomplete set;
  set.skip();
  set.remove(set.whole.train, 1);
  set.remove(set.whole.test, 2);
  for (const int ranks : {1, 3}) {
    const auto left = rank_results(ranks, [&](Communicator& comm) {
      return left_in(load_dataset(set.run.config, comm));
    });
    for (const Left& of_rank : left) CHECK(of_rank == left.front());
    CHECK(left.front().missing == std::vector<size_t>{1, 0, 2});
    const auto& train = set.whole.train.rows;
    CHECK(std::ranges::equal(left.front().train, std::span(train).subspan(1)));
    CHECK(left.front().test.size() + 2 == set.whole.test.rows.size());
    // Published figures are of the whole list, and of no part of it.
    CHECK(left.front().sha256 != set.whole.test.sha256);
  }
}

TEST_CASE("with all images there data.missing=skip changes nothing") {
  Incomplete set;
  set.skip();
  const Dataset dataset = load_dataset(set.run.config, *solo_communicator());
  CHECK(dataset.splits.train.sha256 == set.whole.train.sha256);
  CHECK(dataset.missing.empty());
}

TEST_CASE("data.missing=skip does not leave out a whole split") {
  Incomplete set;
  set.skip();
  set.remove(set.whole.val, set.whole.val.rows.size());
  for (const int ranks : {1, 2}) {
    const auto error = error_of<Error>([&] {
      ThreadWorld(ranks).run(
          [&](Communicator& comm) { load_dataset(set.run.config, comm); });
    });
    CHECK(error.find("images of the val split are missing") !=
          std::string::npos);
  }
}

TEST_CASE("a split that is scored alone counts only its own missing images") {
  Incomplete set;
  set.skip();
  set.remove(set.whole.train, 2);
  set.remove(set.whole.test, 1);
  const TestSet scored = load_split(set.run.config, "test", {"Mass", "Edema"},
                                    *solo_communicator());
  CHECK(scored.dataset.missing == std::map<std::string, size_t>{{"test", 1}});
  CHECK(scored.split.rows.size() + 1 == set.whole.test.rows.size());
}

TEST_CASE("a picture that is in two splits under two names is told") {
  Incomplete set;
  const auto place = [&](const Split& split, size_t i) {
    return set.run.folder / ("set/images/" + set.names[split.rows[i]]);
  };
  const auto found = [&](size_t most) {
    return find_shared_pictures(
        load_dataset(set.run.config, *solo_communicator()), 2, most);
  };
  CHECK(found(100).count == 0);
  for (const size_t i : {0, 1})
    fs::copy_file(place(set.whole.train, i), place(set.whole.test, i),
                  fs::copy_options::overwrite_existing);
  const SharedPictures two = found(100);
  CHECK(two.count == 2);
  CHECK(two.compared == two.alike);
  CHECK(two.example.find(" (train) = ") != std::string::npos);
  CHECK(two.example.ends_with(" (test)"));

  const SharedPictures capped = found(1);
  CHECK(capped.compared == 0);
  CHECK(capped.alike >= 4);

  const Dataset files = load_dataset(set.run.config, *solo_communicator());
  PackJob job;
  job.rows = all_rows(files.manifest);
  job.preprocessing = {36, 32, set.run.config.data.resize_kind};
  const std::string at = set.run.folder.path().string();
  const auto nothing = [](auto, auto) {};
  job.out = at + "/images.pack";
  write_pixel_pack(job, files.manifest, *files.images, *solo_communicator(),
                   nothing);
  job.out = at + "/records";
  write_records(job, files.manifest, *files.images, *solo_communicator(),
                nothing);
  REQUIRE(std::system(("cd " + at +
                       " && tar cf images.tar -C set images && tar czf "
                       "images.tar.gz -C set images")
                          .c_str()) == 0);
  const auto is_seen = [&](const std::vector<std::string>& places) {
    set.run.config.data.images = places;
    const SharedPictures there = found(100);
    CHECK(there.count == two.count);
    CHECK(there.example == two.example);
    CHECK(there.unknown == 0);
  };
  for (const auto* place : {"images.pack", "images.tar", "images.tar.gz"})
    is_seen({at + "/" + place});
  // A split in files, the others in an archive.
  fs::create_directory(at + "/files");
  std::string names;
  for (const auto row : set.whole.test.rows) {
    const std::string& name = files.manifest.images[row];
    names += " " + name;
    fs::rename(at + "/set/images/" + name, at + "/files/" + name);
  }
  REQUIRE(std::system(
              ("cd " + at + " && tar czf rest.tar.gz -C set images").c_str()) ==
          0);
  is_seen({at + "/files", at + "/rest.tar.gz"});
  REQUIRE(std::system(("cd " + at + "/files && mv" + names + " ../set/images")
                          .c_str()) == 0);
  set.run.config.data.images = {at + "/records"};
  CHECK(found(100).unknown == job.rows.size());
  set.run.config.data.images = {at + "/set/images"};

  const auto log = (set.run.folder / "log").string();
  set_log_file(log);
  ThreadWorld(2).run(
      [&](Communicator& comm) { load_dataset(set.run.config, comm); });
  close_log();
  CHECK(read_text(log).find("[split] 2 images of validation or test are in "
                            "another split") != std::string::npos);
}
