// A copy is made in pieces of 8 MiB, each with its CRC-32C in a file of sums:
//
//   X.pack.part   piece 0 | piece 1 | …   renamed to X.pack when all are there
//   X.pack.sums   8 hex digits and a line end for each
//
// A sum is written after its piece was read back from the disk, so a piece with
// a good sum is good, and a copy that was killed goes on with the first one
// that has none.
#include "staged_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kPiece = 8 << 20;
constexpr size_t kLine = 9;       // eight hex digits and a line end
constexpr uint64_t kHead = 4096;  // bytes

std::string short_hash(const std::string& text) {
  return sha256_hex(text).substr(0, 16);
}

std::string content_of(const Container& c) {
  return std::to_string(c.size) + "\n" + c.version + "\n" + c.inode + "\n" +
         std::to_string(c.head_crc32c);
}

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw DataError(
      "[stage] {}: cannot be written: {}. Hint: choose another data.stage, or "
      "off",
      path.string(), std::strerror(error));
}

// A file of ours, made where it is absent.
class OwnFile {
 public:
  explicit OwnFile(const fs::path& path)
      : path_(path),
        fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                   0600)) {
    if (fd_ < 0) cannot_write(path_, errno);
  }
  ~OwnFile() { ::close(fd_); }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  int fd() const { return fd_; }
  void sync() const {
    if (::fsync(fd_) != 0) cannot_write(path_, errno);
  }

 private:
  fs::path path_;
  int fd_;
};

void write_at(int fd, const fs::path& path, uint64_t offset,
              std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count =
        ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_write(path, errno);
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

// As many whole lines as there are.
std::vector<uint32_t> read_sums(const fs::path& path) {
  std::vector<uint32_t> sums;
  if (!fs::exists(path)) return sums;
  const std::string text = read_text(path);
  for (size_t at = 0; at + kLine <= text.size(); at += kLine) {
    uint32_t sum = 0;
    const char* line = text.data() + at;
    const auto result = std::from_chars(line, line + kLine - 1, sum, 16);
    if (result.ptr != line + kLine - 1) break;
    sums.push_back(sum);
  }
  return sums;
}

void write_sum(int fd, const fs::path& path, uint64_t piece, uint32_t sum) {
  char line[kLine + 1];
  std::snprintf(line, sizeof line, "%08x\n", sum);
  write_at(fd, path, piece * kLine, std::as_bytes(std::span(line, kLine)));
}

}  // namespace

StagedCopy::StagedCopy(const fs::path& root, Container source)
    : source_(std::move(source)),
      folder_(root / short_hash(source_.path) /
              short_hash(content_of(source_))),
      path_(folder_ / fs::path(source_.path).filename()),
      part_(path_.string() + ".part"),
      sums_path_(path_.string() + ".sums") {}

uint64_t StagedCopy::pieces() const {
  return (source_.size + kPiece - 1) / kPiece;
}

uint64_t StagedCopy::piece_bytes(uint64_t piece) const {
  assert(piece < pieces());
  return std::min(kPiece, source_.size - piece * kPiece);
}

uint64_t StagedCopy::check(const Tick& tick) {
  sums_ = read_sums(sums_path_);
  sums_.resize(std::min<uint64_t>(sums_.size(), pieces()));
  good_.assign(pieces(), false);
  uint64_t missing = source_.size;
  const fs::path& there = fs::exists(path_) ? path_ : part_;
  const int fd = ::open(there.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return missing;
  std::vector<std::byte> bytes;
  for (uint64_t i = 0; i < sums_.size(); ++i) {
    bytes.resize(piece_bytes(i));
    const auto got = read_at(fd, i * kPiece, bytes);
    good_[i] = got == static_cast<ptrdiff_t>(bytes.size()) &&
               crc32c(bytes) == sums_[i];
    missing -= good_[i] ? bytes.size() : 0;
    tick();
  }
  ::close(fd);
  return missing;
}

void StagedCopy::complete(Store& store,
                          const std::function<void(uint64_t)>& copied) {
  const bool whole = fs::exists(path_);
  if (!whole || std::ranges::find(good_, false) != good_.end()) {
    fs::create_directories(folder_);
    remove_stale_parts();
    {
      const OwnFile file(whole ? path_ : part_);
      const OwnFile sums(sums_path_);
      copy_missing(store, file.fd(), sums.fd(), copied);
      if (::ftruncate(file.fd(), static_cast<off_t>(source_.size)) != 0)
        cannot_write(path_, errno);
      sums.sync();
      file.sync();
    }
    if (!whole) fs::rename(part_, path_);
    sync_folder(folder_);
  }
  compare_heads(store);
}

void StagedCopy::copy_missing(Store& store, int file, int sums,
                              const std::function<void(uint64_t)>& copied) {
  assert(good_.size() == pieces());  // check() comes first
  std::vector<std::byte> bytes;
  sums_.resize(pieces());
  for (uint64_t i = 0; i < pieces(); ++i) {
    if (good_[i]) continue;
    const uint64_t at = i * kPiece;
    store.read(source_.path, at, piece_bytes(i), bytes);
    if (bytes.size() != piece_bytes(i))
      throw DataError(
          "[stage] {}: is shorter than when it was indexed. Hint: somebody "
          "writes to it; start again when it is whole",
          source_.path);
    sums_[i] = crc32c(bytes);
    write_at(file, path_, at, bytes);
    // On the disk before the next piece: no long silence at the end. Errors
    // come again from fsync.
    ::sync_file_range(file, static_cast<off_t>(at),
                      static_cast<off_t>(bytes.size()),
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                          SYNC_FILE_RANGE_WAIT_AFTER);
    verify(file, i, bytes);
    write_sum(sums, sums_path_, i, sums_[i]);
    copied(bytes.size());
  }
}

// What is on the disk now, against what was read: a bad disk shows here.
void StagedCopy::verify(int file, uint64_t piece,
                        std::vector<std::byte>& bytes) const {
  const auto at = static_cast<off_t>(piece * kPiece),
             length = static_cast<off_t>(bytes.size());
  ::posix_fadvise(file, at, length,
                  POSIX_FADV_DONTNEED);  // from the disk where it obeys
  const auto got = read_at(file, piece * kPiece, bytes);
  if (got != static_cast<ptrdiff_t>(bytes.size()) ||
      crc32c(bytes) != sums_[piece])
    throw DataError(
        "[stage] {}: the disk returns other bytes than were written. Hint: it "
        "is bad; choose another data.stage, or off",
        path_.string());
}

void StagedCopy::compare_heads(Store& store) const {
  const uint64_t count = std::min(kHead, source_.size);
  std::vector<std::byte> of_source, of_copy;
  store.read(source_.path, 0, count, of_source);
  local_store()->read(path_.string(), 0, count, of_copy);
  if (of_source == of_copy) return;
  throw DataError(
      "[stage] {}: was written again since it was indexed. Hint: start again "
      "once nobody writes to it",
      source_.path);
}

// What was begun of an older content of this source.
void StagedCopy::remove_stale_parts() const {
  for (const auto& version : fs::directory_iterator(folder_.parent_path())) {
    if (version.path() == folder_) continue;
    const fs::path copy = version.path() / path_.filename();
    std::error_code ignored;
    if (!fs::remove(copy.string() + ".part", ignored)) continue;
    fs::remove(copy.string() + ".sums", ignored);
    fs::remove(version.path(), ignored);  // when it is empty
  }
}

}  // namespace chexnet
