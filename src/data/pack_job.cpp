// A pack is written in three steps: rank 0 makes (or continues) OUT.partial,
// every rank's threads write the pixels of every size-th image at its offset,
// and rank 0 renames it when nothing is missing. An image's number alone gives
// its offset, so the order of writing changes nothing.
#include "chexnet/data/pack_job.hpp"

#include <cassert>
#include <filesystem>
#include <optional>

#include "chexnet/core/error.hpp"
#include "chexnet/data/pack.hpp"
#include "pack_work.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

bool same_images(const PackShape& a, const PackShape& b) {
  return a.names == b.names && a.side == b.side && a.kind == b.kind &&
         a.scaled_jpeg == b.scaled_jpeg;
}

// The checksum of the finished pack that is there already. CheckpointError: it
// holds others.
std::string finished_pack(const std::string& path, const PackShape& shape) {
  const auto store = local_store();
  const PackReader reader(path, *store);
  if (!same_images(reader.shape(), shape))
    throw CheckpointError(
        "[pack] {} exists and holds other images. Hint: choose another --out",
        path);
  return reader.source_sha256();
}

}  // namespace

PackResult write_pixel_pack(const PackJob& job, const Manifest& manifest,
                            const ImageSource& source, Communicator& comm,
                            const PackProgress& progress) {
  assert(job.threads >= 0 && !job.out.empty());
  Preprocessing whole = job.preprocessing;
  whole.crop = whole.resize;
  PackShape shape{whole.resize, whole.kind, {}, whole.scale_jpeg};
  for (const auto row : job.rows) shape.names.push_back(manifest.images[row]);

  bool complete = false;
  std::string sha256;
  std::optional<FileLock> lock;
  on_rank_0(comm, job, "preparing the pack", [&](WorkProgress&) {
    const fs::path out = job.out;
    const std::string hidden = "." + out.filename().string() + ".lock";
    lock.emplace(lock_output(out.parent_path() / hidden, job.out));
    complete = fs::exists(job.out);
    if (complete)
      sha256 = finished_pack(job.out, shape);
    else
      PackWriter::prepare(job.out, shape);
  });
  if (any_rank(comm, complete)) return {0, job.rows.size(), 0, sha256};

  PackWriter writer(job.out, shape);
  const ImageReader reader(source, whole, Augmentation::none(), 0);
  const auto ranks = static_cast<uint64_t>(comm.size());
  const auto rank = static_cast<uint64_t>(comm.rank());
  const uint64_t own = items_of_rank(job.rows.size(), comm);
  PackCounts counts;
  const auto pack_one = [&](uint64_t i, PackScratch& scratch) {
    const uint64_t image = i * ranks + rank;
    if (writer.has(image, scratch.reader.fetched.memory)) {
      ++counts.kept;
    } else if (read_image(reader, job.rows[image], counts, scratch)) {
      writer.write(image, scratch.pixels, scratch.reader.fetched.bytes);
      ++counts.written;
    } else {
      writer.leave_out(image);
    }
    ++counts.done;
  };
  on_every_rank(comm, job, counts, own, pack_one,
                [&] { progress(counts.done, own); });

  PackResult result = total(job, comm, counts);
  on_rank_0(comm, job, "finishing the pack", [&](WorkProgress& finishing) {
    result.source_sha256 = writer.finish([&] { finishing.advance(); });
  });
  return result;
}

}  // namespace chexnet
