#include "chexnet/data/phantom.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "chexnet/data/manifest.hpp"
#include "data/phantom_plan.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
using Catch::Matchers::Contains;

namespace {

constexpr int kPhantomSide = 96;
constexpr int kPersons = 150;

PlannedPhantom planned(uint32_t patient) {
  Random person(1, Purpose::kPhantom, patient);
  Random picture(2, Purpose::kPhantom, patient);
  return draw_plan(person, picture);
}

// The same person and picture without the finding.
PhantomPlan without(PhantomPlan plan, size_t finding) {
  plan.findings[finding] = false;
  if (finding == kCardiomegaly) plan.anatomy.heart_width /= 1.5;
  return plan;
}

// What a finding changes in a picture.
struct Change {
  double all = 0, in_box = 0;
};

Change change_of(const PlannedPhantom& phantom, const PhantomBox& box) {
  const auto& [plan, noise] = phantom;
  const auto with = brightness_of(plan, noise, kPhantomSide);
  const auto plain =
      brightness_of(without(plan, box.finding), noise, kPhantomSide);
  Change change;
  for (int row = 0; row < kPhantomSide; ++row)
    for (int col = 0; col < kPhantomSide; ++col) {
      const auto at = static_cast<size_t>(row * kPhantomSide + col);
      const double by = std::abs(with[at] - plain[at]), x = col + 0.5,
                   y = row + 0.5;
      change.all += by;
      if (box.x <= x && x <= box.x + box.width && box.y <= y &&
          y <= box.y + box.height)
        change.in_box += by;
    }
  return change;
}

PhantomOptions small_set(const std::filesystem::path& folder) {
  PhantomOptions options;
  options.out = folder;
  options.images = 5;
  options.size = 32;
  return options;
}

}  // namespace

TEST_CASE("a phantom's box holds what is drawn of its finding",
          "[arithmetic]") {
  std::array<double, kPhantomFindings> share{};
  std::array<int, kPhantomFindings> boxes{};
  for (uint32_t patient = 1; patient <= kPersons; ++patient) {
    const PlannedPhantom phantom = planned(patient);
    for (const PhantomBox& box : boxes_of(phantom.plan, kPhantomSide)) {
      const Change change = change_of(phantom, box);
      REQUIRE(change.all > 0);
      share[box.finding] += change.in_box / change.all;
      ++boxes[box.finding];
    }
  }
  int with_boxes = 0;
  for (size_t k = 0; k < kPhantomFindings; ++k) {
    if (boxes[k] == 0) continue;
    ++with_boxes;
    INFO(nih_findings()[k] << ", " << boxes[k] << " boxes");
    CHECK(boxes[k] >= 10);
    CHECK(share[k] / boxes[k] > 0.9);
  }
  CHECK(with_boxes == 9);
}

TEST_CASE("a phantom set that cannot be finished leaves nothing behind") {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const auto draw_and_fail = [&](const fs::path& folder) {
    CHECK_THROWS_AS(
        write_phantom_set(
            small_set(folder),
            [](int) { throw std::runtime_error("the disk is full"); }),
        std::runtime_error);
  };
  draw_and_fail(scratch.path() / "new");
  CHECK_FALSE(fs::exists(scratch.path() / "new"));

  fs::create_directory(scratch.path() / "old");
  draw_and_fail(scratch.path() / "old");
  CHECK(fs::is_empty(scratch.path() / "old"));
}

TEST_CASE(
    "a phantom is drawn in an empty folder alone, and removes no other's") {
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const auto refusal = [&](const fs::path& folder) {
    return error_of<CheckpointError>(
        [&] { write_phantom_set(small_set(folder), [](int) {}); });
  };
  const fs::path used = scratch.path() / "used";
  fs::create_directories(used / "images");
  std::ofstream(used / "images/00000001_000.png") << "an X-ray";
  std::ofstream(used / ".phantom.lock") << "";  // as a killed command leaves it
  CHECK_THAT(refusal(used), Contains("not an empty folder: images lies in it"));
  CHECK(fs::file_size(used / "images/00000001_000.png") == 8);

  const fs::path link = scratch.path() / "link";
  fs::create_symlink("nowhere", link);
  refusal(link);
  CHECK(fs::is_symlink(link));
}
