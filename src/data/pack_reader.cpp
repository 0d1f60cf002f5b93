// Nothing in a header is believed before it is checked: sizes against bounds,
// names and table against their checksums, each read in pieces, so no number in
// a damaged file becomes an allocation. Pixels are checked each time.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/core/whole_number.hpp"
#include "chexnet/data/pack.hpp"
#include "pack_layout.hpp"

namespace chexnet {

namespace {

auto bad(const std::string& path, const char* what) {
  return DataError(
      "[pack] {}: {}. Hint: write it again with chexnet-train pack", path,
      what);
}

// The first page; the shape has no names yet.
struct PackHead {
  PackShape shape;
  std::string source_sha256;
  uint64_t images = 0, names_bytes = 0;
  uint32_t names_crc = 0, table_crc = 0;
};

// The JSON of the first page, once its checksum is found right.
nlohmann::json head_json(const std::string& path,
                         std::span<const std::byte> page) {
  if (page.size() < kPackHead ||
      std::memcmp(page.data(), kPackMagic.data(), kPackMagic.size()) != 0)
    throw bad(path, "is not a pack");
  uint32_t length = 0, crc = 0;
  std::memcpy(&length, &page[8], 4);
  std::memcpy(&crc, &page[12], 4);
  if (length > page.size() - kPackHead ||
      crc32c(page.subspan(kPackHead, length)) != crc)
    throw bad(path, "its header is damaged");
  const auto* text = reinterpret_cast<const char*>(page.data()) + kPackHead;
  return nlohmann::json::parse(text, text + length, nullptr, false);
}

PackHead read_head(const std::string& path, std::span<const std::byte> page) {
  const auto json = head_json(path, page);
  PackHead head;
  try {
    head.images = whole_number<uint64_t>(json.at("images"));
    head.names_bytes = whole_number<uint64_t>(json.at("names_bytes"));
    head.names_crc = whole_number<uint32_t>(json.at("names_crc32c"));
    head.table_crc = whole_number<uint32_t>(json.at("table_crc32c"));
    head.shape.side = whole_number<int>(json.at("side"));
    const auto kind =
        find_choice<ResizeKind>(json.at("resize_kind").get<std::string>());
    if (!kind) throw DataError("resize_kind is not known");
    head.shape.kind = *kind;
    // Packs without the field are older than the choice, and were scaled.
    head.shape.scaled_jpeg = find_choice<JpegScale>(json.value(
                                 "jpeg_scale", "auto")) == JpegScale::kAuto;
    head.source_sha256 = json.at("source_sha256");
  } catch (const std::exception&) {
    throw bad(path, "its header lacks a field");
  }
  // A name takes a byte at least, its line break.
  constexpr uint64_t kMost = uint64_t{1} << 32;
  const bool has_side = head.shape.side >= 1 && head.shape.side <= 65536;
  if (!has_side || head.names_bytes > kMost ||
      head.images > std::min(head.names_bytes, kMost / 4))
    throw bad(path, "its header holds impossible sizes");
  return head;
}

// Null where the pack is read image by image.
std::unique_ptr<const MappedFile> map_pack(const std::string& path,
                                           uint64_t size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    throw_unreadable("pack", path, error);
  }
  if (static_cast<uint64_t>(info.st_size) < size) {
    ::close(fd);
    throw bad(path, "is cut off");
  }
  // Mapped from a network, every fault is a small read, and a server that goes
  // away a SIGBUS.
  std::unique_ptr<const MappedFile> map;
  if (!on_network_file_system(path)) {
    map = std::make_unique<MappedFile>(path, fd, size);
    if (map->bytes().empty()) map = nullptr;
  }
  ::close(fd);
  return map;
}

}  // namespace

PackReader::PackReader(std::string path, Store& store)
    : path_(std::move(path)), store_(store) {
  std::vector<std::byte> bytes;
  store_.read(path_, 0, kPackPage, bytes);
  PackHead head = read_head(path_, bytes);
  head_crc32c_ = crc32c(bytes);
  source_sha256_ = std::move(head.source_sha256);
  shape_ = std::move(head.shape);

  read_in_pieces(store_, path_, kPackPage, head.names_bytes, bytes);
  if (bytes.size() != head.names_bytes || crc32c(bytes) != head.names_crc)
    throw bad(path_, "its names are damaged");
  shape_.names =
      lines_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (shape_.names.size() != head.images)
    throw bad(path_, "its names do not match its header");

  const PackLayout layout = pack_layout(shape_, head.names_bytes);
  stride_ = layout.stride;
  data_offset_ = layout.data_offset;
  const uint64_t table_bytes = head.images * sizeof(PackEntry);
  read_in_pieces(store_, path_, layout.table_offset, table_bytes, bytes);
  if (bytes.size() != table_bytes || crc32c(bytes) != head.table_crc)
    throw bad(path_, "its table is damaged");
  table_.resize(head.images);
  std::memcpy(table_.data(), bytes.data(), bytes.size());
  if (!is_s3(path_)) map_ = map_pack(path_, layout.size);
}

std::span<const std::byte> PackReader::pixels(
    uint64_t image, std::vector<std::byte>& scratch,
    const ReadOptions& options) const {
  assert(image < table_.size());
  if (table_[image].done == kPackDamaged)
    throw DataError(
        "[pack] {}: image {} ({}) was damaged when the pack was written. Hint: "
        "fetch it again and write the pack anew",
        path_, image, printable(shape_.names[image]));
  std::span<const std::byte> pixels;
  if (map_) {
    pixels = map_->bytes().subspan(data_offset_ + image * stride_, stride_);
  } else {
    store_.read(path_, data_offset_ + image * stride_, stride_, scratch,
                options);
    pixels = scratch;
  }
  // Each time: somebody may write the file anew while a run uses it.
  if (pixels.size() != stride_ || crc32c(pixels) != table_[image].pixels_crc32c)
    throw DataError(
        "[pack] {}: image {} ({}) at byte {}: its checksum is wrong. Hint: the "
        "file is damaged, or was written again while in use; write the pack "
        "again",
        path_, image, printable(shape_.names[image]),
        data_offset_ + image * stride_);
  return pixels;
}

}  // namespace chexnet
