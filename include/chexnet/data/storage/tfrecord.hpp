// TFRecord files of tf.train.Example, as TensorFlow writes and reads them: per
// record the length (uint64, little endian), its masked CRC32C, the data, its
// masked CRC32C (tensorflow/core/lib/io/record_writer.h). Features as in Dell's
// ai-radiologist-GPU: image/encoded (bytes), image/label (int64 per finding),
// image/filename (bytes); ours add image/label_names, as the order of labels is
// data and never assumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chexnet/data/storage/damaged_container.hpp"
#include "chexnet/data/storage/entry.hpp"
#include "chexnet/data/storage/store.hpp"

namespace chexnet {

struct Example {
  std::span<const std::byte> image;  // image/encoded
  std::string_view filename;         // image/filename
  std::vector<int64_t> labels;       // image/label; -1 = not labeled
  // image/label_names; empty in files of others
  std::vector<std::string_view> label_names;
};

std::string encode_example(const Example& example);
// The views point into `data`. DataError naming `origin` for what is no
// Example. Unknown features are skipped.
Example decode_example(std::span<const std::byte> data,
                       const std::string& origin);
// Only image/encoded: nothing is allocated.
std::span<const std::byte> example_image(std::span<const std::byte> data,
                                         const std::string& origin);

// Appends one record with its checksums.
void append_record(std::string& file, std::string_view data);

// The data of the record that begins at `record`'s first byte; `record` must
// hold it whole. DataError naming path, byte offset and record number when a
// length or checksum is wrong.
std::span<const std::byte> record_data(std::span<const std::byte> record,
                                       const std::string& path, uint64_t offset,
                                       uint64_t number);
// The CRC32C that follows the data; `data` as record_data() returns it.
uint32_t stored_crc32c(std::span<const std::byte> data);
constexpr uint64_t kRecordHead = 12,
                   kRecordTail = 4;  // bytes around the data

// Reads a shard through, checksums included. Entry names are image/filename.
std::vector<Entry> tfrecord_entries(Store& store, const StoredFile& file,
                                    const ShowProgress& progress,
                                    const ReportDamage& damaged = {});

// "train-00003-of-00338" for shard 3 of 338.
std::string shard_name(const std::string& prefix, size_t shard, size_t shards);

}  // namespace chexnet
