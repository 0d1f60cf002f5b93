#include "chexnet/train/run/run_folder.hpp"

#include <chrono>
#include <filesystem>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

struct Place {
  ScratchFolder scratch;
  Config config;
  std::unique_ptr<Communicator> solo = solo_communicator();

  Place() {
    config.run.dir = (scratch / "run").string();
    config.model.weights = "none";
    config.data.manifest.path = {"table.csv"};
    config.train.batch = 24;
  }
  ~Place() { close_log(); }

  RunFolder open(Resume resume) const { return {config, resume, *solo}; }
  std::string refusal(Resume resume) const {
    return error_of<CheckpointError>([&] { open(resume); });
  }
  // A start that came as far as its checkpoint of `step`.
  void run_to(int64_t step) const {
    RunFolder folder = open(Resume::kNo);
    folder.claim(config);
    folder.store().save(step, R"({"step": 1})", [](const fs::path& files) {
      write_atomically(files / "x", "x");
    });
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Of before the program's start.
void make_old(const std::filesystem::path& file) {
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) - std::chrono::hours(1));
}

}  // namespace

TEST_CASE("a run without a name of its folder is in runs") {
  Config config;
  config.run.name = "first";
  CHECK(run_folder_of(config) == fs::path("runs/first"));
  config.run.dir = "/elsewhere";
  CHECK(run_folder_of(config) == fs::path("/elsewhere"));
}

TEST_CASE(
    "a start that failed before it claimed its folder leaves none, and "
    "refuses nothing to the next") {
  const Place place;
  {
    const RunFolder failed = place.open(Resume::kNo);
    CHECK(fs::exists(place.scratch / "run/log/rank-000.txt"));
  }
  CHECK_FALSE(fs::exists(place.scratch / "run"));
  place.refusal(Resume::kYes);  // thrown by the constructor
  CHECK_FALSE(fs::exists(place.scratch / "run"));
  const RunFolder next = place.open(Resume::kNo);
  CHECK_FALSE(next.checkpoint());
  CHECK(next.batch() == 0);
  CHECK_FALSE(next.has_seen_data());
}

TEST_CASE("a start that failed leaves what it did not make") {
  const Place place;
  const auto fail = [&] { const RunFolder failed = place.open(Resume::kNo); };
  place.scratch.write("run/notes.txt", "mine");
  fail();
  CHECK(fs::exists(place.scratch / "run/notes.txt"));
  CHECK_FALSE(fs::exists(place.scratch / "run/log"));
  CHECK_FALSE(fs::exists(place.scratch / "run/.lock"));

  {
    const RunFolder failed = place.open(Resume::kNo);
    place.scratch.write("run/postmortem.json", "{}");
  }
  CHECK(fs::exists(place.scratch / "run/log/rank-000.txt"));
  fail();  // puts the post-mortem aside
  CHECK(fs::exists(place.scratch / "run/postmortem-1.json"));
  CHECK(fs::exists(place.scratch / "run/log/rank-000.txt"));

  place.run_to(7);
  CHECK(has(place.refusal(Resume::kNo), "holds a run already"));
  CHECK(fs::exists(place.scratch / "run/.lock"));
}

TEST_CASE("a folder of other things is left as it was") {
  const Place place;
  place.scratch.write("run/photo.png", "mine");
  for (const Resume resume : {Resume::kNo, Resume::kAuto, Resume::kYes})
    CHECK(has(place.refusal(resume), "holds no run, but photo.png"));
  CHECK_FALSE(fs::exists(place.scratch / "run/log"));
  CHECK_FALSE(fs::exists(place.scratch / "run/.lock"));
}

TEST_CASE("a folder that holds a run is not started afresh by accident") {
  const Place place;
  place.run_to(7);
  CHECK(has(place.refusal(Resume::kNo), "holds a run already"));
  CHECK(place.refusal(Resume::kAuto).empty());
}

TEST_CASE(
    "a folder without a checkpoint is resumed only by auto, which starts "
    "afresh") {
  const Place place;
  CHECK(has(place.refusal(Resume::kYes), "no checkpoint to resume from"));
  CHECK_FALSE(place.open(Resume::kAuto).checkpoint());
}

TEST_CASE(
    "a resume goes on from the newest checkpoint with the batch of the run") {
  Place place;
  place.run_to(7);
  place.config.run.log_every = 3;  // may change
  const RunFolder folder = place.open(Resume::kYes);
  REQUIRE(folder.checkpoint());
  CHECK(has(folder.checkpoint()->string(), "7"));
  CHECK(fs::exists(*folder.checkpoint() / "state.json"));
  CHECK(folder.batch() == 24);
  CHECK(folder.has_seen_data());
}

TEST_CASE(
    "a resume with a config that may not change is refused with the "
    "differences") {
  Place place;
  place.run_to(7);
  place.config.model.arch = Architecture::kResNet50;
  const auto text = error_of<ConfigError>([&] { place.open(Resume::kYes); });
  CHECK(has(text, "model.arch"));
  CHECK(has(text, "resnet50"));
}

TEST_CASE(
    "tables that another place names were not seen by the run that is "
    "resumed") {
  Place place;
  place.run_to(7);
  place.config.data.images = {"/another/disk"};
  CHECK_FALSE(place.open(Resume::kYes).has_seen_data());
}

TEST_CASE(
    "a STOP file asks the run that finds it, or that starts meanwhile, and not "
    "the start after it") {
  const Place place;
  const auto stop = place.scratch / "run/STOP";
  {
    const RunFolder folder = place.open(Resume::kNo);
    CHECK_FALSE(folder.stop_file_exists());
    place.scratch.write("run/STOP", "");
    CHECK(folder.stop_file_exists());
  }
  CHECK(place.open(Resume::kNo).stop_file_exists());
  make_old(stop);
  CHECK_FALSE(place.open(Resume::kNo).stop_file_exists());
}

TEST_CASE("a STOP that cannot be removed is named") {
  const Place place;
  place.scratch.write("run/STOP/in", "");
  make_old(place.scratch / "run/STOP");
  CHECK(has(place.refusal(Resume::kNo), "run/STOP: cannot be removed: "));
}

TEST_CASE("a run folder that cannot be one is refused before any rank starts") {
  const Place place;
  place.scratch.write("run", "");
  Config config;
  const auto refusal = [&](const std::filesystem::path& folder) {
    config.run.dir = folder.string();
    return error_of<CheckpointError>(
        [&] { check_takes_run(config, Resume::kNo); });
  };
  const std::filesystem::path root = place.scratch.path();
  CHECK(has(refusal(root / "run"), "run: is no folder. Hint: name a new"));
  CHECK(has(refusal(root / "run/below/it"), "run: is no folder. Hint"));
  std::filesystem::create_symlink("b", root / "a");
  std::filesystem::create_symlink("a", root / "b");
  CHECK(has(refusal(root / "a"), "a: Too many levels of symbolic links. Hint"));
  CHECK(has(refusal(root / std::string(300, 'x')), "File name too long"));
  CHECK(refusal(root / "new/below").empty());
}
