// One phantom set in every kind of container, written once for all tests of a
// program.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "chexnet/data/pack_job.hpp"
#include "fixtures.hpp"
#include "phantom_set.hpp"

namespace chexnet {

constexpr Preprocessing kContainerInput{40, 32, ResizeKind::kAntialias};

struct Containers {
  ScratchFolder folder;
  Stores stores;
  Manifest manifest;
  std::vector<uint32_t> rows;
  std::map<std::string, std::string> places;

  Containers() {
    manifest = draw_phantom_set(folder / "set", 37, 72);
    rows = all_rows(manifest);
    places["folder"] = (folder / "set/images").string();
    const std::string set = (folder / "set").string(),
                      out = folder.path().string();
    std::filesystem::create_directories(folder / "gz");
    REQUIRE(
        std::system(
            ("cd " + set + " && tar cf " + out + "/all.tar images && tar czf " +
             out +
             "/gz/images_001.tar.gz $(ls -d images/*[0-4]_*.png) && tar czf " +
             out + "/gz/images_002.tar.gz $(ls -d images/*[5-9]_*.png)")
                .c_str()) == 0);
    places["tar"] = out + "/all.tar";
    places["tar.gz"] = out + "/gz";
    PackJob job;
    job.rows = rows;
    job.preprocessing = kContainerInput;
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
    return ImageSource(
        ImageIndex::scan(manifest, rows, {places.at(kind)}, stores), stores);
  }
};

inline Containers& containers() {
  static Containers made;
  return made;
}

}  // namespace chexnet
