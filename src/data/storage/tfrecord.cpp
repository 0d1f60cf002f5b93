// A record, in little endian, its CRCs masked:
//
//   uint64 length | crc of it | data | crc of the data
//   \______ 12 bytes _______/        \__ 4 bytes __/
//
// A length is used only after its checksum agreed, and never beyond the file,
// so a flipped bit is named as damage of this record and no allocation follows
// from it. Data is a tf.train.Example, of which only image/* features are read,
// by protozero's pull parser.
#include "chexnet/data/storage/tfrecord.hpp"

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// Field numbers of tensorflow/core/example/{example,feature}.proto.
constexpr protozero::pbf_tag_type kExampleFeatures = 1, kFeaturesMap = 1,
                                  kMapKey = 1, kMapValue = 2, kFeatureBytes = 1,
                                  kFeatureFloats = 2, kFeatureInt64s = 3,
                                  kListValue = 1;

// tensorflow/core/lib/hash/crc32c.h
constexpr uint32_t kMaskDelta = 0xa282ead8u;

uint32_t masked_crc(std::span<const std::byte> bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

template <class Number>
Number little_endian(const std::byte* at) {
  Number value = 0;
  std::memcpy(&value, at, sizeof value);  // x86-64 and arm64 are little endian
  return value;
}

[[noreturn]] void no_example(const std::string& origin, const char* what) {
  throw DataError(
      "[tfrecord] {}: {}. Hint: records must be tf.train.Example with "
      "image/encoded, image/label and image/filename",
      origin, what);
}

std::string_view view_of(protozero::data_view v) {
  return {v.data(), v.size()};
}

// Labels of a writer that has floats; NaN is its word for not labeled.
int64_t label_of(float value, const std::string& origin) {
  if (std::isnan(value)) return -1;
  constexpr float kEnd = 0x1p63F;
  if (value < -kEnd || value >= kEnd)
    no_example(origin, "a label is beyond every number of 64 bits");
  return static_cast<int64_t>(value);
}

// A tag that is followed by its length. protozero's getters believe the caller
// about that: a field of another type is passed over, as of another schema.
constexpr auto kLengthDelimited = protozero::pbf_wire_type::length_delimited;

// Calls use(key, feature) for each feature of an Example.
template <class Use>
void each_feature(std::span<const std::byte> data, const std::string& origin,
                  Use use) {
  try {
    protozero::pbf_reader example(reinterpret_cast<const char*>(data.data()),
                                  data.size());
    while (example.next(kExampleFeatures, kLengthDelimited)) {
      protozero::pbf_reader features = example.get_message();
      while (features.next(kFeaturesMap, kLengthDelimited)) {
        protozero::pbf_reader entry = features.get_message();
        std::string_view key;
        protozero::pbf_reader feature;
        while (entry.next()) {
          const bool has_length = entry.wire_type() == kLengthDelimited;
          if (entry.tag() == kMapKey && has_length)
            key = view_of(entry.get_view());
          else if (entry.tag() == kMapValue && has_length)
            feature = entry.get_message();
          else
            entry.skip();
        }
        use(key, feature);
      }
    }
  } catch (const protozero::exception&) {
    no_example(origin, "the record is no tf.train.Example");
  }
}

template <class Use>
void each_bytes(protozero::pbf_reader feature, Use use) {
  while (feature.next(kFeatureBytes, kLengthDelimited)) {
    protozero::pbf_reader list = feature.get_message();
    while (list.next(kListValue, kLengthDelimited))
      use(view_of(list.get_view()));
  }
}

// Writers may pack repeated numbers or not.
void add_floats(protozero::pbf_reader list, const std::string& origin,
                std::vector<int64_t>& labels) {
  while (list.next(kListValue)) {
    if (list.wire_type() == kLengthDelimited) {
      for (const float f : list.get_packed_float())
        labels.push_back(label_of(f, origin));
    } else if (list.wire_type() == protozero::pbf_wire_type::fixed32) {
      labels.push_back(label_of(list.get_float(), origin));
    } else {
      list.skip();
    }
  }
}

void add_whole_numbers(protozero::pbf_reader list,
                       std::vector<int64_t>& labels) {
  while (list.next(kListValue)) {
    if (list.wire_type() == kLengthDelimited) {
      for (const auto i : list.get_packed_int64()) labels.push_back(i);
    } else if (list.wire_type() == protozero::pbf_wire_type::varint) {
      labels.push_back(list.get_int64());
    } else {
      list.skip();
    }
  }
}

void add_labels(protozero::pbf_reader feature, const std::string& origin,
                std::vector<int64_t>& labels) {
  while (feature.next()) {
    const bool has_length = feature.wire_type() == kLengthDelimited;
    if (feature.tag() == kFeatureFloats && has_length)
      add_floats(feature.get_message(), origin, labels);
    else if (feature.tag() == kFeatureInt64s && has_length)
      add_whole_numbers(feature.get_message(), labels);
    else
      feature.skip();
  }
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::string encode_example(const Example& example) {
  std::string data;
  protozero::pbf_writer writer(data);
  protozero::pbf_writer features(writer, kExampleFeatures);
  const auto feature = [&](const char* key, auto fill) {
    protozero::pbf_writer entry(features, kFeaturesMap);
    entry.add_string(kMapKey, key);
    protozero::pbf_writer value(entry, kMapValue);
    fill(value);
  };
  const auto bytes = [&](const char* key,
                         const std::vector<std::string_view>& values) {
    feature(key, [&](protozero::pbf_writer& value) {
      protozero::pbf_writer list(value, kFeatureBytes);
      for (const auto v : values)
        list.add_bytes(kListValue, v.data(), v.size());
    });
  };
  bytes("image/encoded", {{reinterpret_cast<const char*>(example.image.data()),
                           example.image.size()}});
  bytes("image/filename", {example.filename});
  feature("image/label", [&](protozero::pbf_writer& value) {
    protozero::pbf_writer list(value, kFeatureInt64s);
    list.add_packed_int64(kListValue, example.labels.begin(),
                          example.labels.end());
  });
  if (!example.label_names.empty())
    bytes("image/label_names", example.label_names);
  return data;
}

Example decode_example(std::span<const std::byte> data,
                       const std::string& origin) {
  Example example;
  each_feature(
      data, origin, [&](std::string_view key, protozero::pbf_reader feature) {
        if (key == "image/encoded") {
          each_bytes(feature,
                     [&](std::string_view v) { example.image = bytes_of(v); });
        } else if (key == "image/filename") {
          each_bytes(feature,
                     [&](std::string_view v) { example.filename = v; });
        } else if (key == "image/label_names") {
          each_bytes(feature, [&](std::string_view v) {
            example.label_names.push_back(v);
          });
        } else if (key == "image/label") {
          add_labels(feature, origin, example.labels);
        }
      });
  if (example.image.data() == nullptr)
    no_example(origin, "the record has no image/encoded");
  return example;
}

std::span<const std::byte> example_image(std::span<const std::byte> data,
                                         const std::string& origin) {
  std::span<const std::byte> image;
  each_feature(
      data, origin, [&](std::string_view key, protozero::pbf_reader feature) {
        if (key == "image/encoded")
          each_bytes(feature, [&](std::string_view v) { image = bytes_of(v); });
      });
  if (image.data() == nullptr)
    no_example(origin, "the record has no image/encoded");
  return image;
}

void append_record(std::string& file, std::string_view data) {
  const uint64_t length = data.size();
  const auto append = [&](const auto& number) {
    file.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  append(length);
  append(masked_crc(std::as_bytes(std::span(&length, 1))));
  file.append(data);
  append(masked_crc(bytes_of(data)));
}

std::span<const std::byte> record_data(std::span<const std::byte> record,
                                       const std::string& path, uint64_t offset,
                                       uint64_t number) {
  const auto damaged = [&](const char* what) {
    return DataError(
        "[tfrecord] {}: record {} at byte {}: {}. Hint: the file is damaged or "
        "not a TFRecord file; copy or write it again (and delete its .index "
        "file)",
        path, number, offset, what);
  };
  if (record.size() < kRecordHead) throw damaged("the file is cut off");
  if (masked_crc(record.first(8)) != little_endian<uint32_t>(&record[8]))
    throw damaged("the checksum of its length is wrong");
  const auto length = little_endian<uint64_t>(record.data());
  if (record.size() < kRecordHead + kRecordTail ||
      length > record.size() - kRecordHead - kRecordTail)
    throw damaged("the file is cut off");
  const auto data = record.subspan(kRecordHead, length);
  if (masked_crc(data) != little_endian<uint32_t>(data.data() + length))
    throw damaged("the checksum of its data is wrong");
  return data;
}

uint32_t stored_crc32c(std::span<const std::byte> data) {
  const uint32_t rotated =
      little_endian<uint32_t>(data.data() + data.size()) - kMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

namespace {

void add_entries(Store& store, const StoredFile& file,
                 const ShowProgress& progress, std::vector<Entry>& entries) {
  std::vector<std::byte> bytes;
  uint64_t start = 0;  // of `bytes` in the file
  uint64_t offset = 0;
  // Whole megabytes at a time: a request each on an object store.
  constexpr uint64_t kPiece = 8 << 20;
  const auto have = [&](uint64_t count) {
    if (offset >= start && offset + count <= start + bytes.size()) return;
    start = offset;
    store.read(file.path, start,
               std::min(std::max(kPiece, count), file.size - start), bytes);
  };
  while (offset < file.size) {
    have(std::min(kRecordHead, file.size - offset));
    const auto at = [&] { return std::span(bytes).subspan(offset - start); };
    uint64_t length = 0;
    if (at().size() >= kRecordHead)
      length = little_endian<uint64_t>(at().data());
    // A damaged length must not become an allocation; record_data() names the
    // damage.
    const uint64_t left = file.size - offset;
    const uint64_t whole =
        length < left ? std::min(left, kRecordHead + length + kRecordTail)
                      : kRecordHead;
    have(std::min(whole, left));
    const auto data = record_data(at(), file.path, offset, entries.size());
    const std::string place =
        file.path + " record " + std::to_string(entries.size());
    const Example example = decode_example(data, place);
    if (example.filename.empty())
      no_example(place, "the record has no image/filename");
    Entry entry;
    entry.name = example.filename;
    entry.offset = offset;
    entry.length = data.size();
    entry.crc32c = stored_crc32c(data);
    entries.push_back(std::move(entry));
    offset += kRecordHead + data.size() + kRecordTail;
    progress(offset);
  }
}

}  // namespace

std::vector<Entry> tfrecord_entries(Store& store, const StoredFile& file,
                                    const ShowProgress& progress,
                                    const ReportDamage& damaged) {
  std::vector<Entry> entries;
  try {
    add_entries(store, file, progress, entries);
  } catch (const DataError& e) {
    report_damage(damaged, e);
  }
  return entries;
}

std::string shard_name(const std::string& prefix, size_t shard, size_t shards) {
  assert(shard < shards);
  char text[48];
  std::snprintf(text, sizeof text, "-%05zu-of-%05zu", shard, shards);
  return prefix + text;
}

}  // namespace chexnet
