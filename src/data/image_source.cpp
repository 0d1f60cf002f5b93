// One read for one image, whatever holds it: a whole file, a range of a tar, a
// range of deflate, a record, or pixels of a mapped pack. The bytes are then
// compared with the index, as archives may be replaced during a run.
#include "chexnet/data/image_source.hpp"

#include <algorithm>
#include <cassert>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "chexnet/data/storage/tfrecord.hpp"

namespace chexnet {
namespace {

constexpr int kObjectStoreReaders = 32;

// Another record may be as sound as the one that was indexed.
void check_record(std::span<const std::byte> data, const std::string& origin,
                  const Entry& entry) {
  if (data.size() != entry.length || stored_crc32c(data) != entry.crc32c)
    throw DataError(
        "[tfrecord] {} at byte {}: is another record than when the file was "
        "indexed. Hint: the file was written again; delete its .index file to "
        "index it again",
        origin, entry.offset);
}

// `covered`: the bytes of the checksum.
void check_member(std::span<const std::byte> covered, uint64_t wanted_bytes,
                  const std::string& origin, const Entry& entry) {
  if (covered.size() != wanted_bytes || crc32c(covered) != entry.crc32c)
    throw DataError(
        "[tar] {} at byte {}: its checksum differs from when the archive was "
        "indexed. Hint: the archive changed or is damaged; delete its .index "
        "file to index it again",
        origin, entry.offset);
}

}  // namespace

const uint8_t* FetchedImage::pixels() const {
  assert(holds_pixels());
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

void decode_fetched(const FetchedImage& fetched, const DecodeLimits& limits,
                    GrayImage& into) {
  if (!fetched.holds_pixels())
    return decode_image(fetched.bytes, limits, fetched.origin, into);
  within_memory(fetched.origin, [&] {
    into.assign(fetched.pixels(), fetched.side, fetched.side);
  });
}

ImageSource::ImageSource(ImageIndex index, Stores& stores)
    : index_(std::move(index)),
      stores_(stores),
      packs_(index_.containers().size()) {
  for (size_t c = 0; c < packs_.size(); ++c) {
    const Container& container = index_.containers()[c];
    if (container.kind != ContainerKind::kPack) continue;
    packs_[c] = std::make_unique<PackReader>(container.path,
                                             stores_.of(container.path));
    if (packs_[c]->head_crc32c() != container.head_crc32c)
      throw DataError(
          "[pack] {}: was written again since it was indexed. Hint: start "
          "again once nobody writes to it",
          container.path);
  }
}

void ImageSource::fetch(uint32_t row, FetchedImage& into,
                        const std::stop_token& stop) const {
  assert(index_.has(row));
  const ImageLocation& location = index_.location(row);
  const Container& container = index_.containers()[location.container];
  within_memory(container.path, [&] {
    fetch_from(container, location, into, {.stop = stop, .was_there = true});
  });
}

void ImageSource::fetch_from(const Container& container,
                             const ImageLocation& location, FetchedImage& into,
                             const ReadOptions& options) const {
  const Entry& entry = location.entry;
  Store& store = stores_.of(container.path);
  into.side = 0;
  into.origin.assign(container.path);
  const auto part = [&](const char* what) {
    char number[24];
    const int length =
        std::snprintf(number, sizeof number, "%llu",
                      static_cast<unsigned long long>(location.number));
    into.origin.append(what).append(number, static_cast<size_t>(length));
  };
  switch (container.kind) {
    case ContainerKind::kFile:
      store.read_whole(container.path, into.memory, options);
      into.bytes = into.memory;
      break;
    case ContainerKind::kTfrecord: {
      part(" record ");
      store.read(container.path, entry.offset,
                 kRecordHead + entry.length + kRecordTail, into.memory,
                 options);
      const auto data = record_data(into.memory, container.path, entry.offset,
                                    location.number);
      check_record(data, into.origin, entry);
      into.bytes = example_image(data, into.origin);
      break;
    }
    case ContainerKind::kTar: {
      // With its headers, which have its name: an archive that was replaced by
      // one of equal size and time may have the same content under another.
      part(" member ");
      const uint64_t bytes = entry.skip + entry.length;
      store.read(container.path, entry.offset - entry.skip, bytes, into.memory,
                 options);
      check_member(into.memory, bytes, into.origin, entry);
      into.bytes = std::span(into.memory).subspan(entry.skip);
      break;
    }
    case ContainerKind::kTarGz:
      part(" member ");
      store.read(container.path, entry.offset, entry.stored, into.compressed,
                 options);
      inflate_member(into.compressed, entry, container.path, into.memory);
      check_member(into.memory, entry.length, into.origin, entry);
      into.bytes = into.memory;
      break;
    case ContainerKind::kPack: {
      part(" image ");
      const PackReader& pack = *packs_[location.container];
      into.bytes = pack.pixels(location.number, into.memory, options);
      into.side = pack.shape().side;
      break;
    }
  }
}

std::vector<const PackReader*> ImageSource::packs() const {
  std::vector<const PackReader*> found;
  for (const auto& pack : packs_)
    if (pack) found.push_back(pack.get());
  return found;
}

int ImageSource::wanted_readers() const {
  const bool remote = std::ranges::any_of(
      index_.containers(), [](const Container& c) { return is_s3(c.path); });
  return remote ? kObjectStoreReaders : 0;
}

bool ImageSource::reads_over_network() const {
  return std::ranges::any_of(index_.containers(), [](const Container& c) {
    return is_remote(c.path);
  });
}

S3Options s3_options(const S3Config& config) {
  return {config.endpoint,
          config.region,
          config.profile,
          config.instance_metadata,
          static_cast<int>(config.attempts),
          config.timeout_s};
}

std::unique_ptr<Stores> open_stores(const DataConfig& config) {
  return std::make_unique<Stores>(s3_options(config.s3), config.retry_s);
}

}  // namespace chexnet
