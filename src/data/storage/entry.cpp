// Which index to trust: an index beside an archive counts when only its owner,
// root or the caller can have written it; one in the user's own cache folder
// when only the caller can. Elsewhere an entry could point anywhere in the
// archive. Wherever the index lies, each entry must be inside the container.
#include "chexnet/data/storage/entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/core/user_cache.hpp"
#include "chexnet/data/storage/damaged_container.hpp"
#include "chexnet/data/storage/index_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "chexnet/data/storage/tfrecord.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

std::string index_path(const std::string& container) {
  return container + ".index";
}

fs::path cached_index_path(const std::string& container) {
  return user_cache_folder("index") /
         (sha256_hex(container).substr(0, 32) + ".index");
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// The text of a file that only `owners` (and root) can have written; nothing
// when it is unreadable or others may write it.
std::optional<std::string> read_trusted(const fs::path& path,
                                        const std::vector<uid_t>& owners) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode))
    return {};
  const bool others_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool known = info.st_uid == 0 ||
                     std::ranges::find(owners, info.st_uid) != owners.end();
  if (others_write || !known) {
    static std::once_flag said;  // a folder of shards has hundreds
    std::call_once(said, [&] {
      log_warning("[index] " + path.string() +
                  ": others than you and the data's owner can write it, so it "
                  "(and any like it) is "
                  "not used. Hint: delete it, or chmod go-w");
    });
    return {};
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  const auto got =
      read_at(file.fd(), 0, std::as_writable_bytes(std::span(text)));
  if (got < 0) return {};
  text.resize(static_cast<size_t>(got));
  return text;
}

std::vector<StoredFile> list_if_there(Store& store, const std::string& path) {
  try {
    return store.list(path);
  } catch (const AbsentError&) {
    return {};
  }
}

// The index beside an object. It was uploaded with it, so its first line has
// the version of the file it was made for, not the object's: size, each entry's
// checksum and that it is not older than the object must do.
std::optional<std::string> read_object(Store& store, const std::string& path,
                                       const StoredFile& container) {
  const auto found = list_if_there(store, path);
  if (found.size() != 1 || found.front().path != path) return {};
  if (found.front().modified < container.modified) {
    log_warning("[index] " + path + " is older than " + container.path +
                ", so it is not used and the container is read through. Hint: "
                "upload an index after its container");
    return {};
  }
  std::vector<std::byte> bytes;
  store.read_whole(path, bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool take(const std::optional<std::string>& text, const std::string& wanted,
          const std::string& origin, const StoredFile& file, ContainerKind kind,
          std::vector<Entry>& entries) {
  if (!text || !text->starts_with(wanted))
    return false;  // of another content, or another version
  try {
    entries = entries_of_text(*text, origin);
    const auto possible = [&](const Entry& e) {
      return is_possible(e, kind, file.size);
    };
    if (std::ranges::all_of(entries, possible)) return true;
    throw DataError(
        "[index] {}: an entry is outside of its container. Hint: delete it",
        origin);
  } catch (const DataError& e) {
    log_warning(std::string(e.what()) + "; reading the container again");
    return false;
  }
}

bool read_index(Store& store, const StoredFile& file, ContainerKind kind,
                std::vector<Entry>& entries) {
  const std::string beside = index_path(file.path);
  const std::string wanted = index_head(kind, file) + "\n";
  if (is_s3(file.path)) {
    const std::string any_version = index_head(kind, {file.path, file.size});
    if (take(read_object(store, beside, file), any_version, beside, file, kind,
             entries))
      return true;
  } else {
    struct stat container {};
    if (::stat(file.path.c_str(), &container) != 0) return false;
    const auto text = read_trusted(beside, {::geteuid(), container.st_uid});
    if (take(text, wanted, beside, file, kind, entries)) return true;
  }
  const fs::path cached = cached_index_path(file.path);
  return take(read_trusted(cached, {::geteuid()}), wanted, cached.string(),
              file, kind, entries);
}

// A folder of thousands of archives is looked through once, not for each.
void remove_left_partials_once(const fs::path& folder) {
  static std::mutex mutex;
  static std::set<fs::path> looked_through;
  const std::lock_guard lock(mutex);
  if (looked_through.insert(folder).second) remove_left_partials(folder);
}

// True when it was written.
bool write_beside(const StoredFile& file, const std::string& text) {
  struct stat container {};
  if (is_s3(file.path) || ::stat(file.path.c_str(), &container) != 0)
    return false;
  if (::geteuid() != 0 && ::geteuid() != container.st_uid) return false;
  // Whoever may read the container may read its index; only the owner may write
  // it.
  const unsigned mode =
      S_IRUSR | S_IWUSR | (container.st_mode & (S_IRGRP | S_IROTH));
  // The one that was there is of no use, and what replaces nothing leaves
  // nothing when it is killed.
  std::error_code ignored;
  fs::remove(index_path(file.path), ignored);
  remove_left_partials_once(fs::absolute(file.path).parent_path());
  try {
    write_atomically(index_path(file.path), text, mode);
    return true;
  } catch (const CheckpointError&) {  // a read-only data folder is usual
    return false;
  }
}

void write_index(const StoredFile& file, const std::string& text) {
  if (write_beside(file, text)) return;
  try {
    make_user_cache_folder("index");
    write_atomically(cached_index_path(file.path), text, 0600);
  } catch (const std::exception& e) {
    log_warning("the index of " + file.path +
                " cannot be kept, so each start reads it through: " + e.what());
  }
}

}  // namespace

ContainerKind container_kind(const std::string& path) {
  // Of the end alone: a folder's name may hold a line end, which no "."
  // matches.
  static const std::regex shard(R"(-\d{5}-of-\d{5})");
  constexpr size_t kShardEnd = std::string_view("-00000-of-00001").size();
  const auto ends = [&](const char* suffix) { return path.ends_with(suffix); };
  if (ends(".tar")) return ContainerKind::kTar;
  if (ends(".tar.gz") || ends(".tgz")) return ContainerKind::kTarGz;
  if (ends(".pack")) return ContainerKind::kPack;
  if (ends(".tfrecord") || ends(".tfrecords") ||
      std::regex_match(
          path.substr(path.size() - std::min(path.size(), kShardEnd)), shard))
    return ContainerKind::kTfrecord;
  return ContainerKind::kFile;
}

bool is_index_file(const std::string& path) { return path.ends_with(".index"); }

void report_damage(const ReportDamage& damaged, const DataError& error) {
  if (!damaged) throw error;
  damaged(error.what());
}

std::vector<Entry> entries_before_damage(Store& store, const StoredFile& file,
                                         ContainerKind kind,
                                         const ShowProgress& progress,
                                         const ReportDamage& damaged) {
  std::vector<Entry> entries;
  if (read_index(store, file, kind, entries)) return entries;
  bool whole = true;
  ReportDamage note;
  if (damaged)
    note = [&](const std::string& message) {
      whole = false;
      damaged(message);
    };
  switch (kind) {
    case ContainerKind::kTar:
      entries = tar_entries(store, file, progress, note);
      break;
    case ContainerKind::kTarGz:
      entries = tar_gz_entries(store, file, progress, note);
      break;
    case ContainerKind::kTfrecord:
      entries = tfrecord_entries(store, file, progress, note);
      break;
    case ContainerKind::kFile:
    case ContainerKind::kPack:
      return entries;
  }
  if (whole) write_index(file, index_text(entries, kind, file));
  return entries;
}

std::vector<Entry> container_entries(Store& store, const StoredFile& file,
                                     ContainerKind kind,
                                     const ShowProgress& progress) {
  return entries_before_damage(store, file, kind, progress, {});
}

}  // namespace chexnet
