// All offsets in .NAME.partial are fixed before the first image (PackLayout),
// and space is taken at once. An image's table entry is written after its
// pixels, with their checksum: entries whose pixels agree are done, even if the
// process that wrote them died.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/write_hint.hpp"
#include "chexnet/data/pack.hpp"
#include "pack_layout.hpp"

namespace chexnet {
namespace {

std::string names_text(const PackShape& shape) {
  std::string text;
  for (size_t i = 0; i < shape.names.size(); ++i) {
    if (shape.names[i].find('\n') != std::string::npos)
      throw DataError(
          "[pack] the name of image {} has a line break, which no pack can "
          "hold. Hint: rename it in the table",
          i);
    text += shape.names[i] + "\n";
  }
  return text;
}

std::string head_text(std::string_view magic, const std::string& json) {
  std::string head(magic);
  const auto length = static_cast<uint32_t>(json.size());
  const uint32_t crc = crc32c(bytes_of(json));
  head.append(reinterpret_cast<const char*>(&length), 4);
  head.append(reinterpret_cast<const char*>(&crc), 4);
  return head + json;
}

[[noreturn]] void write_failed(const std::string& path, int error) {
  throw CheckpointError(
      "[pack] {}: cannot be written: {}. Hint: {}; the pack goes on where it "
      "stopped when started again",
      path, std::strerror(error), write_hint(error, "--out"));
}

void write_at(int fd, const std::string& path, uint64_t offset,
              std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count =
        ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) write_failed(path, errno);
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

bool read_all(int fd, uint64_t offset, std::span<std::byte> into) {
  return read_at(fd, offset, into) == static_cast<ptrdiff_t>(into.size());
}

// Hidden, so that nothing takes it for data.
std::string partial_path(const std::string& path) {
  const auto name = path.rfind('/') + 1;
  return path.substr(0, name) + "." + path.substr(name) + ".partial";
}

}  // namespace

void PackWriter::prepare(const std::string& path, const PackShape& shape) {
  const std::string names = names_text(shape);
  const PackLayout layout = pack_layout(shape, names.size());
  // The plan that a partial file must have to be continued.
  const std::string plan = head_text(
      kPartialPackMagic,
      Json{{"side", shape.side},
           {"resize_kind", choice_name(shape.kind)},
           {"jpeg_scale", choice_name(shape.scaled_jpeg ? JpegScale::kAuto
                                                        : JpegScale::kOff)},
           {"images", shape.names.size()},
           {"names_sha256", sha256_hex(names)}}
          .dump());
  const std::string partial = partial_path(path);
  const int fd =
      ::open(partial.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) write_failed(partial, errno);
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  std::vector<std::byte> kept(plan.size());
  if (read_all(fd, 0, kept) &&
      std::memcmp(kept.data(), plan.data(), plan.size()) == 0)
    return;
  if (::ftruncate(fd, 0) != 0) write_failed(partial, errno);
  // Space is taken now, so that a full disk shows at once and not after hours.
  if (::fallocate(fd, 0, 0, static_cast<off_t>(layout.size)) != 0) {
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
      ::unlink(partial.c_str());
      write_failed(partial, error);
    }
    if (::ftruncate(fd, static_cast<off_t>(layout.size)) != 0)
      write_failed(partial, errno);
  }
  write_at(fd, partial, kPackPage, bytes_of(names));
  write_at(fd, partial, 0,
           bytes_of(plan));  // last: with it the file can be taken up
}

PackWriter::PackWriter(std::string path, const PackShape& shape)
    : path_(std::move(path)), shape_(shape) {
  const PackLayout layout = pack_layout(shape_, names_text(shape_).size());
  table_offset_ = layout.table_offset;
  data_offset_ = layout.data_offset;
  stride_ = layout.stride;
  fd_ = ::open(partial_path(path_).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0) write_failed(partial_path(path_), errno);
}

PackWriter::~PackWriter() {
  if (fd_ >= 0) ::close(fd_);
}

bool PackWriter::has(uint64_t image, std::vector<std::byte>& scratch) const {
  assert(image < shape_.names.size());
  PackEntry entry;
  if (!read_all(fd_, table_offset_ + image * sizeof entry,
                std::as_writable_bytes(std::span(&entry, 1))) ||
      entry.done != kPackDone)
    return false;
  scratch.resize(stride_);
  return read_all(fd_, data_offset_ + image * stride_, scratch) &&
         crc32c(scratch) == entry.pixels_crc32c;
}

void PackWriter::write(uint64_t image, std::span<const uint8_t> pixels,
                       std::span<const std::byte> source) {
  assert(image < shape_.names.size() && pixels.size() <= stride_);
  const PackEntry entry{crc32c(std::as_bytes(pixels)), crc32c(source),
                        source.size(), kPackDone};
  write_at(fd_, path_, data_offset_ + image * stride_, std::as_bytes(pixels));
  write_at(fd_, path_, table_offset_ + image * sizeof entry,
           std::as_bytes(std::span(&entry, 1)));
}

void PackWriter::leave_out(uint64_t image) {
  assert(image < shape_.names.size());
  const PackEntry entry{0, 0, 0, kPackDamaged};
  write_at(fd_, path_, table_offset_ + image * sizeof entry,
           std::as_bytes(std::span(&entry, 1)));
}

void PackWriter::sync(const std::function<void()>& tick) const {
  constexpr uint64_t kPiece = 64 << 20;
  const uint64_t size = data_offset_ + stride_ * shape_.names.size();
  constexpr unsigned kOut = SYNC_FILE_RANGE_WAIT_BEFORE |
                            SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (uint64_t at = 0; at < size; at += kPiece) {
    // Errors come again from fsync, which also empties the disk's write cache.
    ::sync_file_range(fd_, static_cast<off_t>(at), static_cast<off_t>(kPiece),
                      kOut);
    tick();
  }
  if (::fsync(fd_) != 0) write_failed(path_, errno);
}

std::string PackWriter::finish(const std::function<void()>& tick) {
  const std::string names = names_text(shape_);
  const PackLayout layout = pack_layout(shape_, names.size());
  std::vector<PackEntry> table(shape_.names.size());
  const auto bytes = std::as_writable_bytes(std::span(table));
  if (!read_all(fd_, layout.table_offset, bytes)) write_failed(path_, EIO);
  // The pack's sources: names, sizes and checksums, in order.
  Sha256 source;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].done != kPackDone && table[i].done != kPackDamaged)
      throw CheckpointError(
          "[pack] {}: {} is missing. Hint: start the same command again", path_,
          shape_.names[i]);
    source.update(shape_.names[i] + "\t" +
                  std::to_string(table[i].source_bytes) + "\t" +
                  std::to_string(table[i].source_crc32c) + "\n");
  }
  std::string sha256 = source.hex();
  const std::string head = head_text(
      kPackMagic,
      Json{{"images", shape_.names.size()},
           {"side", shape_.side},
           {"resize_kind", choice_name(shape_.kind)},
           {"jpeg_scale", choice_name(shape_.scaled_jpeg ? JpegScale::kAuto
                                                         : JpegScale::kOff)},
           {"stride", layout.stride},
           {"names_bytes", layout.names_bytes},
           {"table_offset", layout.table_offset},
           {"data_offset", layout.data_offset},
           {"source_sha256", sha256},
           {"names_crc32c", crc32c(bytes_of(names))},
           {"table_crc32c", crc32c(bytes)}}
          .dump());
  sync(tick);  // the pixels before the header that names them
  std::string page = head;
  page.resize(kPackPage);  // over the plan, to its end
  write_at(fd_, path_, 0, bytes_of(page));
  if (::fsync(fd_) != 0) write_failed(path_, errno);
  if (::rename(partial_path(path_).c_str(), path_.c_str()) != 0)
    write_failed(path_, errno);
  const auto slash = path_.rfind('/');
  sync_folder(slash == std::string::npos ? "." : path_.substr(0, slash + 1));
  return sha256;
}

}  // namespace chexnet
