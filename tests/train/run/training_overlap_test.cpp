#include "chexnet/train/run/training_overlap.hpp"

#include <string>
#include <vector>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

Manifest four_images() {
  Manifest manifest;
  manifest.images = {"a.png", "b, c.png", "d.png", "e.png"};
  manifest.patients = {"1", "1", "2", "3"};
  return manifest;
}

}  // namespace

TEST_CASE("images of patients that were trained on are counted") {
  const ScratchFolder folder;
  const auto path = folder.write("split.csv",
                                 "image,patient,split\n\"b, c.png\",1,train\n"
                                 "x.png,2,val\ny.png,3,train\n");
  Manifest manifest = four_images();
  auto overlap = training_overlap(path, {}, manifest, {0, 1, 2, 3});
  CHECK(overlap.images == 1);
  CHECK(overlap.of_patients == 3);  // both of 1, and that of 3
  overlap = training_overlap(path, {}, manifest, {2});
  CHECK((overlap.images == 0 && overlap.of_patients == 0));

  manifest.knows_patients = false;
  overlap = training_overlap(path, {}, manifest, {0, 1, 2, 3});
  CHECK((overlap.images == 1 && overlap.of_patients == 1));
}

TEST_CASE("a file that is no list of splits is refused") {
  const ScratchFolder folder;
  const auto path = folder.write("split.csv", "image,split\na,train\n");
  CHECK(error_of<DataError>([&] {
          training_overlap(path, {}, four_images(), {0});
        }).find("does not begin with image,patient,split") !=
        std::string::npos);
}
