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
#include "chexnet/data/phantom.hpp"
#include "fixtures.hpp"

namespace chexnet {

constexpr Preprocessing kContainerInput{40, 32, ResizeKind::kAntialias,
                                        1'000'000};

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
    for (std::uint32_t row = 0; row < manifest.size(); ++row)
      rows.push_back(row);
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
