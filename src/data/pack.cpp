#include "chexnet/data/pack.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"

namespace chexnet {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kPage = 4096, kHead = 16;
constexpr std::string_view kMagic = "CHXPACK1", kPartialMagic = "CHXPART1";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string names_text(const PackShape& shape) {
  std::string text;
  for (const auto& name : shape.names) text += name + "\n";
  return text;
}

// Where everything lies; a function of the shape alone.
struct Layout {
  std::uint64_t names_bytes, table_offset, data_offset, stride, size;
};
Layout layout_of(const PackShape& shape, std::size_t names_bytes) {
  const auto up = [](std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; };
  Layout l{};
  const auto side = static_cast<std::uint64_t>(shape.side);
  l.names_bytes = names_bytes;
  l.table_offset = up(kPage + names_bytes, 64);
  l.data_offset = up(l.table_offset + shape.names.size() * sizeof(PackEntry), kPage);
  l.stride = side * side;
  l.size = l.data_offset + l.stride * shape.names.size();
  return l;
}

std::string head_text(std::string_view magic, const std::string& json) {
  std::string head(magic);
  const auto length = static_cast<std::uint32_t>(json.size());
  const std::uint32_t crc = crc32c(bytes_of(json));
  head.append(reinterpret_cast<const char*>(&length), 4);
  head.append(reinterpret_cast<const char*>(&crc), 4);
  return head + json;
}

[[noreturn]] void write_failed(const std::string& path, int error) {
  throw CheckpointError("[pack] " + path + ": cannot be written: " + std::strerror(error) +
                        ". Hint: " +
                        (error == ENOSPC || error == EDQUOT
                             ? "free space there or choose another --out; the pack goes on where "
                               "it stopped when started again"
                             : "check the folder and its permissions"));
}

void write_at(int fd, const std::string& path, std::uint64_t offset,
              std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) write_failed(path, errno);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

bool read_all(int fd, std::uint64_t offset, std::span<std::byte> into) {
  return read_at(fd, offset, into) == static_cast<std::ptrdiff_t>(into.size());
}

// Hidden, so that nothing takes it for data.
std::string partial_path(const std::string& path) {
  const auto name = path.rfind('/') + 1;
  return path.substr(0, name) + "." + path.substr(name) + ".partial";
}

}  // namespace

PackReader::PackReader(std::string path, Store& store) : path_(std::move(path)), store_(store) {
  const auto bad = [&](const char* what) {
    return DataError("[pack] " + path_ + ": " + what +
                     ". Hint: write it again with chexnet-train pack");
  };
  std::vector<std::byte> bytes;
  store_.read(path_, 0, kPage, bytes);
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    throw bad("is not a pack");
  std::uint32_t length = 0, crc = 0;
  std::memcpy(&length, &bytes[8], 4);
  std::memcpy(&crc, &bytes[12], 4);
  if (length > bytes.size() - kHead || crc32c(std::span(bytes).subspan(kHead, length)) != crc)
    throw bad("its header is damaged");
  const Json json =
      Json::parse(reinterpret_cast<const char*>(&bytes[kHead]),
                  reinterpret_cast<const char*>(&bytes[kHead]) + length, nullptr, false);
  std::uint64_t images = 0, names_bytes = 0;
  std::uint32_t names_crc = 0, table_crc = 0;
  try {
    images = json.at("images");
    names_bytes = json.at("names_bytes");
    names_crc = json.at("names_crc32c");
    table_crc = json.at("table_crc32c");
    shape_.side = json.at("side");
    shape_.kind = resize_kind(json.at("resize_kind"));
    source_sha256_ = json.at("source_sha256");
  } catch (const std::exception&) {
    throw bad("its header lacks a field");
  }
  if (shape_.side < 1 || shape_.side > 65536 || names_bytes > (1ull << 32) || images > names_bytes)
    throw bad("its header holds impossible sizes");
  store_.read(path_, kPage, names_bytes, bytes);
  if (bytes.size() != names_bytes || crc32c(bytes) != names_crc) throw bad("its names are damaged");
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    shape_.names.emplace_back(text.substr(0, end));
  if (shape_.names.size() != images) throw bad("its names do not match its header");
  const Layout layout = layout_of(shape_, names_bytes);
  stride_ = layout.stride;
  data_offset_ = layout.data_offset;
  table_.resize(images);
  store_.read(path_, layout.table_offset, images * sizeof(PackEntry), bytes);
  if (bytes.size() != images * sizeof(PackEntry) || crc32c(bytes) != table_crc)
    throw bad("its table is damaged");
  std::memcpy(table_.data(), bytes.data(), bytes.size());
  verified_ = std::make_unique<std::atomic<bool>[]>(images);
  if (is_s3(path_)) return;

  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    if (fd >= 0) ::close(fd);
    throw bad("cannot be opened");
  }
  if (static_cast<std::uint64_t>(info.st_size) < layout.size) {
    ::close(fd);
    throw bad("is cut off");
  }
  // Mapped from a network, every fault is a small read, and a server that goes away a SIGBUS.
  if (!on_network_file_system(path_)) {
    void* map = ::mmap(nullptr, layout.size, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) map_ = {static_cast<const std::byte*>(map), layout.size};
  }
  ::close(fd);
}

PackReader::~PackReader() {
  if (!map_.empty()) ::munmap(const_cast<std::byte*>(map_.data()), map_.size());
}

std::span<const std::byte> PackReader::pixels(std::uint64_t image,
                                              std::vector<std::byte>& scratch) const {
  std::span<const std::byte> pixels;
  bool check = true;
  if (!map_.empty()) {
    pixels = map_.subspan(data_offset_ + image * stride_, stride_);
    check = !verified_[image].load(std::memory_order_relaxed);
  } else {
    store_.read(path_, data_offset_ + image * stride_, stride_, scratch);
    pixels = scratch;
  }
  if (check) {
    if (pixels.size() != stride_ || crc32c(pixels) != table_[image].pixels_crc32c)
      throw DataError("[pack] " + path_ + ": image " + std::to_string(image) + " (" +
                      shape_.names[image] + ") at byte " +
                      std::to_string(data_offset_ + image * stride_) +
                      ": its checksum is wrong. Hint: the file is damaged; write the pack again");
    verified_[image].store(true, std::memory_order_relaxed);
  }
  return pixels;
}

void PackWriter::prepare(const std::string& path, const PackShape& shape) {
  const std::string names = names_text(shape);
  const Layout layout = layout_of(shape, names.size());
  // What a partial file must be of to be taken up.
  const std::string plan =
      head_text(kPartialMagic, Json{{"side", shape.side},
                                    {"resize_kind", resize_kind_name(shape.kind)},
                                    {"images", shape.names.size()},
                                    {"names_sha256", sha256_hex(names)}}
                                   .dump());
  const std::string partial = partial_path(path);
  const int fd = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) write_failed(partial, errno);
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  std::vector<std::byte> kept(plan.size());
  if (read_all(fd, 0, kept) && std::memcmp(kept.data(), plan.data(), plan.size()) == 0) return;
  if (::ftruncate(fd, 0) != 0) write_failed(partial, errno);
  // Space is taken now, so that a full disk shows at once and not after hours.
  if (::fallocate(fd, 0, 0, static_cast<off_t>(layout.size)) != 0) {
    const int error = errno;
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
      ::unlink(partial.c_str());
      write_failed(partial, error);
    }
    if (::ftruncate(fd, static_cast<off_t>(layout.size)) != 0) write_failed(partial, errno);
  }
  write_at(fd, partial, kPage, bytes_of(names));
  write_at(fd, partial, 0, bytes_of(plan));  // last: with it the file can be taken up
}

PackWriter::PackWriter(std::string path, const PackShape& shape)
    : path_(std::move(path)), shape_(shape) {
  const Layout layout = layout_of(shape_, names_text(shape_).size());
  table_offset_ = layout.table_offset;
  data_offset_ = layout.data_offset;
  stride_ = layout.stride;
  fd_ = ::open(partial_path(path_).c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) write_failed(partial_path(path_), errno);
}

PackWriter::~PackWriter() {
  if (fd_ >= 0) ::close(fd_);
}

bool PackWriter::has(std::uint64_t image) const {
  PackEntry entry;
  if (!read_all(fd_, table_offset_ + image * sizeof entry,
                std::as_writable_bytes(std::span(&entry, 1))) ||
      entry.done != kPackDone)
    return false;
  thread_local std::vector<std::byte> pixels;
  pixels.resize(stride_);
  return read_all(fd_, data_offset_ + image * stride_, pixels) &&
         crc32c(pixels) == entry.pixels_crc32c;
}

void PackWriter::write(std::uint64_t image, std::span<const std::uint8_t> pixels,
                       std::span<const std::byte> source) {
  const PackEntry entry{crc32c(std::as_bytes(pixels)), crc32c(source), source.size(), kPackDone};
  write_at(fd_, path_, data_offset_ + image * stride_, std::as_bytes(pixels));
  write_at(fd_, path_, table_offset_ + image * sizeof entry, std::as_bytes(std::span(&entry, 1)));
}

std::string PackWriter::finish() {
  const std::string names = names_text(shape_);
  const Layout layout = layout_of(shape_, names.size());
  std::vector<PackEntry> table(shape_.names.size());
  const auto bytes = std::as_writable_bytes(std::span(table));
  if (!read_all(fd_, layout.table_offset, bytes)) write_failed(path_, EIO);
  // What the pack was made of: names, sizes and checksums of the sources, in order.
  Sha256 source;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].done != kPackDone)
      throw CheckpointError("[pack] " + path_ + ": " + shape_.names[i] +
                            " is missing. Hint: start the same command again");
    source.update(shape_.names[i] + "\t" + std::to_string(table[i].source_bytes) + "\t" +
                  std::to_string(table[i].source_crc32c) + "\n");
  }
  std::string sha256 = source.hex();
  const std::string head = head_text(kMagic, Json{{"images", shape_.names.size()},
                                                  {"side", shape_.side},
                                                  {"resize_kind", resize_kind_name(shape_.kind)},
                                                  {"stride", layout.stride},
                                                  {"names_bytes", layout.names_bytes},
                                                  {"table_offset", layout.table_offset},
                                                  {"data_offset", layout.data_offset},
                                                  {"source_sha256", sha256},
                                                  {"names_crc32c", crc32c(bytes_of(names))},
                                                  {"table_crc32c", crc32c(bytes)}}
                                                 .dump());
  if (::fsync(fd_) != 0)
    write_failed(path_, errno);  // the pixels before the header that names them
  std::string page = head;
  page.resize(kPage);  // over the plan, to its end
  write_at(fd_, path_, 0, bytes_of(page));
  if (::fsync(fd_) != 0) write_failed(path_, errno);
  if (::rename(partial_path(path_).c_str(), path_.c_str()) != 0) write_failed(path_, errno);
  const auto slash = path_.rfind('/');
  sync_folder(slash == std::string::npos ? "." : path_.substr(0, slash + 1));
  return sha256;
}

}  // namespace chexnet
