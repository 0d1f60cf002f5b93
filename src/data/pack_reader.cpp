// Nothing in a header is believed before it is checked: sizes against bounds,
// names and table against their checksums, each read in pieces, so no number in
// a damaged file becomes an allocation. Pixels are checked when they are first
// touched; `verified_` remembers it, and two threads that check the same image
// do no harm.
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
#include "chexnet/core/files.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/pack.hpp"
#include "pack_layout.hpp"

namespace chexnet {

PackReader::PackReader(std::string path, Store& store)
    : path_(std::move(path)), store_(store) {
  const auto bad = [&](const char* what) {
    return DataError("[pack] " + path_ + ": " + what +
                     ". Hint: write it again with chexnet-train pack");
  };
  std::vector<std::byte> bytes;
  store_.read(path_, 0, kPackPage, bytes);
  if (bytes.size() < kPackHead ||
      std::memcmp(bytes.data(), kPackMagic.data(), kPackMagic.size()) != 0)
    throw bad("is not a pack");
  std::uint32_t length = 0, crc = 0;
  std::memcpy(&length, &bytes[8], 4);
  std::memcpy(&crc, &bytes[12], 4);
  if (length > bytes.size() - kPackHead ||
      crc32c(std::span(bytes).subspan(kPackHead, length)) != crc)
    throw bad("its header is damaged");
  const auto json = nlohmann::json::parse(
      reinterpret_cast<const char*>(&bytes[kPackHead]),
      reinterpret_cast<const char*>(&bytes[kPackHead]) + length, nullptr,
      false);
  std::uint64_t images = 0, names_bytes = 0;
  std::uint32_t names_crc = 0, table_crc = 0;
  try {
    images = json.at("images");
    names_bytes = json.at("names_bytes");
    names_crc = json.at("names_crc32c");
    table_crc = json.at("table_crc32c");
    shape_.side = json.at("side");
    const auto kind =
        find_choice<ResizeKind>(json.at("resize_kind").get<std::string>());
    if (!kind) throw DataError("resize_kind is not known");
    shape_.kind = *kind;
    shape_.scaled_jpeg = find_choice<JpegScale>(json.value(
                             "jpeg_scale", "auto")) == JpegScale::kAuto;
    source_sha256_ = json.at("source_sha256");
  } catch (const std::exception&) {
    throw bad("its header lacks a field");
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  const bool has_side = shape_.side >= 1 && shape_.side <= 65536;
  if (!has_side || names_bytes > kMost ||
      images > std::min(names_bytes, kMost / 4))
    throw bad("its header holds impossible sizes");
  head_crc32c_ = crc32c(bytes);
  read_in_pieces(store_, path_, kPackPage, names_bytes, bytes);
  if (bytes.size() != names_bytes || crc32c(bytes) != names_crc)
    throw bad("its names are damaged");
  std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size());
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    shape_.names.emplace_back(text.substr(0, end));
  if (shape_.names.size() != images)
    throw bad("its names do not match its header");
  const PackLayout layout = pack_layout(shape_, names_bytes);
  stride_ = layout.stride;
  data_offset_ = layout.data_offset;
  read_in_pieces(store_, path_, layout.table_offset, images * sizeof(PackEntry),
                 bytes);
  if (bytes.size() != images * sizeof(PackEntry) || crc32c(bytes) != table_crc)
    throw bad("its table is damaged");
  table_.resize(images);
  std::memcpy(table_.data(), bytes.data(), bytes.size());
  verified_ = std::make_unique<std::atomic<bool>[]>(images);
  if (is_s3(path_)) return;

  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    throw_unreadable("pack", path_, error);
  }
  if (static_cast<std::uint64_t>(info.st_size) < layout.size) {
    ::close(fd);
    throw bad("is cut off");
  }
  // Mapped from a network, every fault is a small read, and a server that goes
  // away a SIGBUS.
  if (!on_network_file_system(path_)) {
    map_ = std::make_unique<MappedFile>(path_, fd, layout.size);
    if (map_->bytes().empty()) map_ = nullptr;
  }
  ::close(fd);
}

std::span<const std::byte> PackReader::pixels(
    std::uint64_t image, std::vector<std::byte>& scratch,
    const ReadOptions& options) const {
  assert(image < table_.size());
  if (table_[image].done == kPackDamaged)
    throw DataError("[pack] " + path_ + ": image " + std::to_string(image) +
                    " (" + printable(shape_.names[image]) +
                    ") was damaged when the pack was written. Hint: fetch it "
                    "again and write the "
                    "pack anew");
  std::span<const std::byte> pixels;
  bool check = true;
  if (map_) {
    pixels = map_->bytes().subspan(data_offset_ + image * stride_, stride_);
    check = !verified_[image].load(std::memory_order_relaxed);
  } else {
    store_.read(path_, data_offset_ + image * stride_, stride_, scratch,
                options);
    pixels = scratch;
  }
  if (check) {
    if (pixels.size() != stride_ ||
        crc32c(pixels) != table_[image].pixels_crc32c)
      throw DataError("[pack] " + path_ + ": image " + std::to_string(image) +
                      " (" + printable(shape_.names[image]) + ") at byte " +
                      std::to_string(data_offset_ + image * stride_) +
                      ": its checksum is wrong. Hint: the file is damaged; "
                      "write the pack again");
    verified_[image].store(true, std::memory_order_relaxed);
  }
  return pixels;
}

}  // namespace chexnet
