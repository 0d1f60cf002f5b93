// Record shards: shard s holds images [s * per_shard, (s + 1) * per_shard) of
// the shuffled rows, and rank r writes shards r, r + size, … A shard appears
// under its name only when it is whole and synced, so one that is there is
// kept, and an interrupted job goes on with the next.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/image/encode.hpp"
#include "chexnet/data/pack_job.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tfrecord.hpp"
#include "pack_work.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// image/label of a record: 1, 0, or -1 when it is not known.
int label_code(float label) {
  if (std::isnan(label)) return -1;
  return label > 0.5f ? 1 : 0;
}

std::vector<uint32_t> shuffled_rows(const PackJob& job) {
  std::vector<uint32_t> rows = job.rows;
  if (job.shuffle_seed > 0) {
    Random random(job.shuffle_seed, Purpose::kOrder, 0);
    shuffle(rows, random);
  }
  return rows;
}

// Of the names and labels, in the order of the records.
std::string content_sha256(const Manifest& manifest,
                           const std::vector<uint32_t>& rows) {
  Sha256 content;
  for (const auto row : rows) {
    content.update(manifest.images[row]);
    const float* labels = manifest.label_row(row);
    for (size_t k = 0; k < manifest.finding_count(); ++k)
      content.update("\t" + std::to_string(label_code(labels[k])));
    content.update("\n");
  }
  return content.hex();
}

// A description of a prefix's shards, in a file beside them: a second start
// must want the same.
void agree_on_plan(const PackJob& job, const Manifest& manifest,
                   const std::vector<uint32_t>& rows) {
  const Json plan = {
      {"images", rows.size()},
      {"per_shard", job.per_shard},
      {"shuffle_seed", job.shuffle_seed},
      {"findings", manifest.findings},
      {"images_and_labels_sha256", content_sha256(manifest, rows)}};
  const std::string path =
      (fs::path(job.out) / ("." + job.prefix + ".plan.json")).string();
  const std::string text = json_text(plan, 1) + "\n";
  if (!fs::exists(path)) return write_atomically(path, text);
  if (read_text(path) != text)
    throw CheckpointError(
        "[pack] {} holds shards '{}' of other images or labels. Hint: choose "
        "another --out or --prefix",
        job.out, job.prefix);
}

// Decoding proves each image whole; its size does not matter, so a small one,
// or the pack's.
Preprocessing proof_of_decoding(const PackJob& job, const ImageSource& source) {
  Preprocessing small = job.preprocessing;
  small.resize = small.crop = 64;
  for (const PackReader* pack : source.packs()) {
    small.resize = small.crop = pack->shape().side;
    small.kind = pack->shape().kind;
    small.scale_jpeg = pack->shape().scaled_jpeg;
  }
  return small;
}

// After the shard is complete: its index knows its time of writing. Without one
// it is read through.
void keep_index(const std::string& shard, const std::vector<Entry>& entries) {
  const StoredFile file = local_store()->list(shard).front();
  write_atomically(shard + ".index",
                   index_text(entries, ContainerKind::kTfrecord, file));
}

// The shards of one job on one rank; any number of threads.
class ShardWriter {
 public:
  ShardWriter(const PackJob& job, const Manifest& manifest,
              const ImageReader& reader, const std::vector<uint32_t>& rows,
              PackCounts& counts)
      : job_(job),
        manifest_(manifest),
        reader_(reader),
        rows_(rows),
        counts_(counts) {}

  size_t shards() const {
    return (rows_.size() + job_.per_shard - 1) / job_.per_shard;
  }
  size_t images_of(size_t shard) const {
    return end_of(shard) - begin_of(shard);
  }

  void write(size_t shard, PackScratch& scratch) {
    assert(shard < shards());
    const std::string name = shard_name(job_.prefix, shard, shards());
    const std::string path = (fs::path(job_.out) / name).string();
    if (fs::exists(path)) {  // renamed only when whole and synced
      counts_.kept += images_of(shard);
      counts_.done += images_of(shard);
      return;
    }
    OutputFile out(path);
    std::vector<Entry> entries;
    uint64_t offset = 0;
    bool whole = true;
    for (size_t r = begin_of(shard); r < end_of(shard); ++r, ++counts_.done) {
      const bool sound = read_image(reader_, rows_[r], counts_, scratch);
      whole = whole && (sound || job_.damage.skip);
      offset +=
          append_image(rows_[r], sound ? &scratch.reader.fetched : nullptr,
                       offset, out, entries);
      counts_.written += sound ? 1 : 0;
    }
    if (!whole) return;  // the destructor removes it; total() tells
    out.commit();
    sync_folder(job_.out);
    keep_index(path, entries);
  }

 private:
  size_t begin_of(size_t shard) const { return shard * job_.per_shard; }
  size_t end_of(size_t shard) const {
    return std::min(rows_.size(), begin_of(shard) + job_.per_shard);
  }

  // One record, without a picture when `fetched` is null. Returns its bytes.
  size_t append_image(uint32_t row, const FetchedImage* fetched,
                      uint64_t offset, OutputFile& out,
                      std::vector<Entry>& entries) const {
    Example example;
    std::vector<std::byte> png;  // memory that `example` may refer to
    if (fetched != nullptr && fetched->holds_pixels()) {
      png = encode_gray_png(fetched->pixels(), fetched->side, fetched->side);
      example.image = png;
    } else if (fetched != nullptr) {
      example.image = fetched->bytes;
    }
    example.filename = manifest_.images[row];
    const float* labels = manifest_.label_row(row);
    for (size_t k = 0; k < manifest_.finding_count(); ++k) {
      example.labels.push_back(label_code(labels[k]));
      example.label_names.push_back(manifest_.findings[k]);
    }
    const std::string data = encode_example(example);
    std::string record;
    append_record(record, data);
    out.write(record);

    Entry entry;
    entry.name = example.filename;
    entry.offset = offset;
    entry.length = record.size() - kRecordHead - kRecordTail;
    entry.crc32c = crc32c(std::as_bytes(std::span(data)));
    entries.push_back(std::move(entry));
    return record.size();
  }

  const PackJob& job_;
  const Manifest& manifest_;
  const ImageReader& reader_;
  const std::vector<uint32_t>& rows_;
  PackCounts& counts_;
};

}  // namespace

PackResult write_records(const PackJob& job, const Manifest& manifest,
                         const ImageSource& source, Communicator& comm,
                         const PackProgress& progress) {
  assert(job.per_shard > 0);
  const std::vector<uint32_t> rows = shuffled_rows(job);
  std::optional<FileLock> lock;
  on_rank_0(comm, job, "preparing the shards", [&](WorkProgress&) {
    lock.emplace(
        lock_output(fs::path(job.out) / ("." + job.prefix + ".lock"), job.out));
    agree_on_plan(job, manifest, rows);
  });

  const ImageReader reader(source, proof_of_decoding(job, source),
                           Augmentation::none(), 0);
  PackCounts counts;
  ShardWriter writer(job, manifest, reader, rows, counts);
  const auto ranks = static_cast<size_t>(comm.size());
  const auto rank = static_cast<size_t>(comm.rank());
  const uint64_t own = items_of_rank(writer.shards(), comm);
  uint64_t images = 0;
  for (size_t i = 0; i < own; ++i) images += writer.images_of(i * ranks + rank);

  const auto write_shard = [&](uint64_t i, PackScratch& scratch) {
    writer.write(i * ranks + rank, scratch);
  };
  on_every_rank(comm, job, counts, own, write_shard,
                [&] { progress(counts.done, images); });
  return total(job, comm, counts);
}

}  // namespace chexnet
