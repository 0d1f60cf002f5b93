#include "chexnet/data/pack_job.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/file_lock.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/json_text.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/data/pack.hpp"
#include "chexnet/image/encode.hpp"
#include "chexnet/storage/index_text.hpp"
#include "chexnet/storage/tfrecord.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

// What the workers of a rank share.
struct Shared {
  std::atomic<std::uint64_t> done = 0, written = 0, kept = 0;
  std::mutex mutex;  // guards damaged
  std::vector<std::string> damaged;
};

// image/label of a record.
int label_code(float label) { return std::isnan(label) ? -1 : label > 0.5f ? 1 : 0; }

// How many of `all` items a rank has that takes every size-th.
std::uint64_t own_fraction(std::uint64_t all, const Communicator& comm) {
  const auto ranks = static_cast<std::uint64_t>(comm.size());
  return (all + ranks - 1 - static_cast<std::uint64_t>(comm.rank())) / ranks;
}

// One image's file bytes and its [side, side] pixels; false (and noted) when it is damaged.
bool read_image(const ImageReader& reader, std::uint32_t row, Shared& shared,
                ImageReader::Scratch& scratch, std::vector<std::uint8_t>& pixels) {
  try {
    reader.read({.row = row}, pixels.data(), scratch);
    return true;
  } catch (const DataError& e) {
    const std::lock_guard lock(shared.mutex);
    shared.damaged.emplace_back(e.what());
    return false;
  }
}

// What all ranks did; DataError when more was damaged than allowed.
PackResult total(const PackJob& job, Communicator& comm, const Shared& shared) {
  const auto damaged = count(accept_damage(job.damage, shared.damaged, job.rows.size(), "pack",
                                           "; the rest is done and kept", comm));
  double counts[] = {static_cast<double>(shared.written.load()),
                     static_cast<double>(shared.kept.load())};
  comm.all_reduce(counts, ReduceOp::kSum);
  return {
      static_cast<std::uint64_t>(counts[0]), static_cast<std::uint64_t>(counts[1]), damaged, {}};
}

// After the shard is complete: its index knows its time of writing. Without one it is read through.
void keep_index(const std::string& shard, const std::vector<Entry>& entries) {
  const StoredFile file = local_store()->list(shard).front();
  write_atomically(shard + ".index", index_text(entries, ContainerKind::kTfrecord, file));
}

// Runs `action` on rank 0 while the others wait; every rank throws when it throws.
void on_rank_0(Communicator& comm, const PackJob& job, const char* what,
               const std::function<void(WorkProgress&)>& action) {
  const bool acts = comm.rank() == 0;
  share_work(comm, {what, job.timeout_s}, acts ? action : std::function<void(WorkProgress&)>());
}

// Held by rank 0. `out` is what --out named.
FileLock lock_output(const fs::path& hidden, const std::string& out) {
  if (const auto folder = hidden.parent_path(); !folder.empty()) fs::create_directories(folder);
  auto lock = FileLock::try_take(hidden);
  if (!lock)
    throw CheckpointError("[pack] " + out +
                          ": another pack writes there now. Hint: wait for it, or choose another "
                          "--out");
  return std::move(*lock);
}

// `work` for each of `count` items, by all threads of this rank.
void on_every_rank(Communicator& comm, const PackJob& job, const Shared& shared,
                   std::uint64_t count, const std::function<void(std::size_t)>& work,
                   const std::function<void()>& show) {
  share_work(comm, {"packing", job.timeout_s}, [&](WorkProgress& progress) {
    std::uint64_t seen = 0;
    parallel_for(count, job.threads, work, [&] {
      show();
      if (const std::uint64_t done = shared.done; done != seen) {
        seen = done;
        progress.advance();
      }
    });
  });
}

}  // namespace

PackResult write_pixel_pack(const PackJob& job, const Manifest& manifest, const ImageSource& source,
                            Communicator& comm, const PackProgress& progress) {
  Preprocessing whole = job.preprocessing;
  whole.crop = whole.resize;
  PackShape shape{whole.resize, whole.kind, {}, whole.scale_jpeg};
  for (const auto row : job.rows) shape.names.push_back(manifest.images[row]);
  bool complete = false;
  std::string sha256;
  std::optional<FileLock> lock;
  on_rank_0(comm, job, "preparing the pack", [&](WorkProgress&) {
    const fs::path out = job.out;
    lock.emplace(
        lock_output(out.parent_path() / ("." + out.filename().string() + ".lock"), job.out));
    if (fs::exists(job.out)) {
      const auto store = local_store();
      const PackReader reader(job.out, *store);
      if (reader.shape().names != shape.names || reader.shape().side != shape.side ||
          reader.shape().kind != shape.kind || reader.shape().scaled_jpeg != shape.scaled_jpeg)
        throw CheckpointError("[pack] " + job.out +
                              " exists and holds other images. Hint: choose another --out");
      complete = true;
      sha256 = reader.source_sha256();
      return;
    }
    PackWriter::prepare(job.out, shape);
  });
  if (any_rank(comm, complete)) return {0, job.rows.size(), 0, sha256};

  PackWriter writer(job.out, shape);
  const ImageReader reader(source, whole, Augmentation::none(), 0);
  const auto ranks = static_cast<std::uint64_t>(comm.size()),
             rank = static_cast<std::uint64_t>(comm.rank());
  const std::uint64_t own = own_fraction(job.rows.size(), comm);
  Shared shared;
  const auto tick = [&] { progress(shared.done, own); };
  const auto pack_one = [&](std::uint64_t i) {
    thread_local ImageReader::Scratch scratch;
    thread_local std::vector<std::uint8_t> pixels;
    pixels.resize(static_cast<std::size_t>(whole.resize) * static_cast<std::size_t>(whole.resize));
    const std::uint64_t image = i * ranks + rank;
    if (writer.has(image)) {
      ++shared.kept;
    } else if (read_image(reader, job.rows[image], shared, scratch, pixels)) {
      writer.write(image, pixels, scratch.fetched.bytes);
      ++shared.written;
    } else {
      writer.leave_out(image);
    }
    ++shared.done;
  };
  on_every_rank(comm, job, shared, own, pack_one, tick);
  PackResult result = total(job, comm, shared);
  on_rank_0(comm, job, "finishing the pack", [&](WorkProgress& finishing) {
    result.source_sha256 = writer.finish([&] { finishing.advance(); });
  });
  return result;
}

PackResult write_records(const PackJob& job, const Manifest& manifest, const ImageSource& source,
                         Communicator& comm, const PackProgress& progress) {
  std::vector<std::uint32_t> rows = job.rows;
  if (job.shuffle_seed > 0) {
    Random random(job.shuffle_seed, Purpose::kOrder, 0);
    shuffle(rows, random);
  }
  const std::size_t shards = (rows.size() + job.per_shard - 1) / job.per_shard;
  std::optional<FileLock> lock;
  on_rank_0(comm, job, "preparing the shards", [&](WorkProgress&) {
    lock.emplace(lock_output(fs::path(job.out) / ("." + job.prefix + ".lock"), job.out));
    Sha256 content;
    for (const auto row : rows) {
      content.update(manifest.images[row]);
      for (std::size_t k = 0; k < manifest.finding_count(); ++k) {
        const float label = manifest.label_row(row)[k];
        content.update("\t" + std::to_string(label_code(label)));
      }
      content.update("\n");
    }
    const nlohmann::ordered_json plan = {{"images", rows.size()},
                                         {"per_shard", job.per_shard},
                                         {"shuffle_seed", job.shuffle_seed},
                                         {"findings", manifest.findings},
                                         {"images_and_labels_sha256", content.hex()}};
    const std::string path = (fs::path(job.out) / ("." + job.prefix + ".plan.json")).string();
    const std::string text = json_text(plan, 1) + "\n";
    if (!fs::exists(path)) return write_atomically(path, text);
    if (read_text(path) != text)
      throw CheckpointError("[pack] " + job.out + " holds shards '" + job.prefix +
                            "' of other images or labels. Hint: choose another --out or --prefix");
  });

  Preprocessing small =
      job.preprocessing;  // decoding proves each image whole; its size is no matter
  small.resize = small.crop = 64;
  for (const PackReader* pack : source.packs()) {
    small.resize = small.crop = pack->shape().side;
    small.kind = pack->shape().kind;
    small.scale_jpeg = pack->shape().scaled_jpeg;
  }
  const ImageReader reader(source, small, Augmentation::none(), 0);
  const auto ranks = static_cast<std::size_t>(comm.size()),
             rank = static_cast<std::size_t>(comm.rank());
  const std::uint64_t own = own_fraction(shards, comm);
  std::uint64_t images = 0;
  for (std::size_t i = 0; i < own; ++i)
    images += std::min(job.per_shard, rows.size() - (i * ranks + rank) * job.per_shard);
  Shared shared;
  const auto tick = [&] { progress(shared.done, images); };
  const auto write_shard = [&](std::uint64_t i) {
    thread_local ImageReader::Scratch scratch;
    thread_local std::vector<std::uint8_t> pixels;
    pixels.resize(static_cast<std::size_t>(small.crop) * static_cast<std::size_t>(small.crop));
    const std::size_t shard = i * ranks + rank;
    const std::string name = shard_name(job.prefix, shard, shards);
    const std::string path = (fs::path(job.out) / name).string();
    const std::size_t begin = shard * job.per_shard,
                      end = std::min(rows.size(), begin + job.per_shard);
    if (fs::exists(path)) {  // renamed only when whole and synced
      shared.kept += end - begin;
      shared.done += end - begin;
      return;
    }
    OutputFile out(path);
    std::vector<Entry> entries;
    std::uint64_t offset = 0;
    std::string record;
    bool whole = true;
    for (std::size_t r = begin; r < end; ++r, ++shared.done) {
      const bool sound = read_image(reader, rows[r], shared, scratch, pixels);
      whole = whole && (sound || job.damage.skip);
      std::vector<std::byte> png;
      Example example;
      if (sound) example.image = scratch.fetched.bytes;
      if (sound && scratch.fetched.side > 0) {
        png = encode_gray_png(reinterpret_cast<const std::uint8_t*>(example.image.data()),
                              scratch.fetched.side, scratch.fetched.side);
        example.image = png;
      }
      example.filename = manifest.images[rows[r]];
      for (std::size_t k = 0; k < manifest.finding_count(); ++k) {
        const float label = manifest.label_row(rows[r])[k];
        example.labels.push_back(label_code(label));
        example.label_names.push_back(manifest.findings[k]);
      }
      record.clear();
      const std::string data = encode_example(example);
      append_record(record, data);
      out.write(record);
      Entry entry;
      entry.name = example.filename;
      entry.offset = offset;
      entry.length = record.size() - kRecordHead - kRecordTail;
      entry.crc32c = crc32c(std::as_bytes(std::span(data)));
      entries.push_back(std::move(entry));
      offset += record.size();
      shared.written += sound ? 1 : 0;
    }
    if (!whole) return;  // the destructor removes it; total() tells
    out.commit();
    sync_folder(job.out);
    keep_index(path, entries);
  };
  on_every_rank(comm, job, shared, own, write_shard, tick);
  return total(job, comm, shared);
}

}  // namespace chexnet
