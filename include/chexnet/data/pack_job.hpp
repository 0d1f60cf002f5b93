// Writes a data set anew for fast reading: a pack of resized pixels, or
// TFRecord shards of the files as they are. Any source, any number of ranks and
// threads; an interrupted job continues where it was, and the result is the
// same to the last byte. Nothing under its final name is ever incomplete.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/data/damage.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/manifest.hpp"

namespace chexnet {

struct PackJob {
  std::string out;              // pack file, or folder of shards
  std::vector<uint32_t> rows;   // which images, in this order
  Preprocessing preprocessing;  // resize and kind of a pack; limits of decoding
  std::string prefix = "train";  // of shards
  size_t per_shard = 256;        // images
  uint64_t shuffle_seed = 1;     // order of the records; 0 = as `rows`
  int threads = 1;
  double timeout_s = 600;  // without progress, while the other ranks wait
  // A damaged image that is left out keeps its position: a pack has no pixels
  // for it, a record no image, so a reader finds it damaged.
  DamagePolicy damage = {};
};

struct PackResult {
  uint64_t written = 0,
           kept = 0;     // images of all ranks; kept: done by an earlier start
  uint64_t damaged = 0;  // left out by this start
  // Packs: names, sizes and checksums of the source files.
  std::string source_sha256;
};

// `progress` gets how many of this rank's images are done, and how many it has.
// All ranks call; every image is decoded. DataError on all ranks lists the
// damaged ones when there are more than allowed; AbsentError, OutageError end
// the job at once. The next start continues with what is on disk. One job at a
// time writes to a path: CheckpointError for the second.
using PackProgress = std::function<void(uint64_t done, uint64_t all)>;
PackResult write_pixel_pack(const PackJob& job, const Manifest& manifest,
                            const ImageSource& source, Communicator& comm,
                            const PackProgress& progress);
PackResult write_records(const PackJob& job, const Manifest& manifest,
                         const ImageSource& source, Communicator& comm,
                         const PackProgress& progress);

}  // namespace chexnet
