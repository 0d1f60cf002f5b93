#include "chexnet/data/stage.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/resources.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kPiece = 8 << 20;

bool remote(const Container& c) { return is_s3(c.path) || on_network_file_system(c.path); }

std::string auto_folder() {
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      if (!on_network_file_system(value)) return value;
  return "/tmp";
}

std::string copy_path(const std::string& folder, const Container& c) {
  const std::string identity = sha256_hex(c.path + "\n" + std::to_string(c.size)).substr(0, 16);
  return folder + "/chexnet-stage/" + identity + "/" + fs::path(c.path).filename().string();
}

std::string sum_text(std::uint64_t size, std::uint32_t sum) {
  return std::to_string(size) + " " + std::to_string(sum) + "\n";
}

// CRC32C over the whole file, piece by piece; `each` sees every piece.
template <class Each>
std::string sum_of(Store& store, const std::string& path, std::uint64_t size, Each each) {
  std::vector<std::byte> piece;
  std::uint32_t sum = 0;
  std::uint64_t at = 0;
  while (at < size) {
    store.read(path, at, std::min(kPiece, size - at), piece);
    if (piece.empty()) break;
    sum = crc32c(piece, sum);
    each(piece);
    at += piece.size();
  }
  return sum_text(at, sum);
}

// True when the copy is there and is what its sum file says.
bool usable(const std::string& copy, std::uint64_t size) {
  const std::string sums = copy + ".sum";
  if (!fs::exists(copy) || !fs::exists(sums) || fs::file_size(copy) != size) return false;
  return read_text(sums) == sum_of(*local_store(), copy, size, [](auto&) {});
}

void copy(Store& store, const Container& c, const std::string& to, Progress& progress,
          std::uint64_t& done, std::uint64_t all) {
  const fs::path partial = fs::path(to).parent_path() / ".partial";
  const double start = now_s();
  OutputFile out(partial);
  const std::string sums = sum_of(store, c.path, c.size, [&](const std::vector<std::byte>& piece) {
    out.write(piece);
    done += piece.size();
    progress.show(
        "staging: " + fixed(100.0 * static_cast<double>(done) / static_cast<double>(all), 0) +
        " % of " + readable_bytes(static_cast<double>(all)) + ", " + readable_s(now_s() - start) +
        " for " + fs::path(c.path).filename().string());
  });
  out.commit();
  // What is on the disk now, against what was read: a bad disk shows here.
  if (sum_of(*local_store(), partial, c.size, [](auto&) {}) != sums)
    throw DataError("[stage] " + to + " differs from " + c.path +
                    " after copying. Hint: the disk is bad, or the source changed meanwhile");
  write_atomically(to + ".sum", sums);
  fs::rename(partial, to);
}

// Copies what is not there yet.
void fill(const std::vector<Container>& wanted, const std::string& folder, Stores& stores,
          bool show) {
  std::uint64_t missing = 0;
  std::vector<const Container*> to_copy;
  fs::create_directories(folder + "/chexnet-stage");
  // Two jobs of one node wait for each other.
  const std::string lock_path = folder + "/chexnet-stage/.lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0 || ::flock(lock, LOCK_EX) != 0)
    throw DataError("[stage] " + lock_path + " cannot be locked. Hint: choose another data.stage");
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{lock};
  for (const Container& c : wanted) {
    if (usable(copy_path(folder, c), c.size)) continue;
    to_copy.push_back(&c);
    missing += c.size;
  }
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) == 0) {
    const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
    if (missing + missing / 50 > free)
      throw DataError("[stage] " + folder + " has " + readable_bytes(static_cast<double>(free)) +
                      " free, the data needs " + readable_bytes(static_cast<double>(missing)) +
                      ". Hint: choose another data.stage, or off");
  }
  Progress progress(show);
  std::uint64_t done = 0;
  for (const Container* c : to_copy) {
    const std::string to = copy_path(folder, *c);
    fs::create_directories(fs::path(to).parent_path());
    copy(stores.of(c->path), *c, to, progress, done, missing);
  }
  progress.clear();
  if (show)
    log_info("stage: " + std::to_string(to_copy.size()) + " files (" +
             readable_bytes(static_cast<double>(missing)) + ") copied to " + folder + ", " +
             std::to_string(wanted.size() - to_copy.size()) + " were there");
}

}  // namespace

ImageIndex staged(ImageIndex index, const std::string& where, Stores& stores, Communicator& comm) {
  if (where == "off") return index;
  const bool automatic = where == "auto";
  const std::string folder = automatic ? auto_folder() : where;
  std::vector<Container> wanted;
  std::size_t single_files = 0;
  for (const auto& c : index.containers()) {
    if (c.kind == ContainerKind::kFile)
      ++single_files;
    else if (!automatic || remote(c))
      wanted.push_back(c);
  }
  if (single_files > 0 && !automatic && comm.rank() == 0)
    log_warning("stage: " + std::to_string(single_files) +
                " images are files of their own and stay where they are; pack them first");
  std::string failure;
  if (comm.world().local_rank == 0 && !wanted.empty()) {
    try {
      fill(wanted, folder, stores, comm.rank() == 0);
    } catch (const Error& e) {
      failure = e.what();
    } catch (const std::exception& e) {
      failure = "[stage] " + folder + ": " + e.what() + ". Hint: choose another data.stage, or off";
    }
  }
  if (any_rank(comm, !failure.empty())) {
    std::string first;
    for (const auto& text : gather_text(comm, failure))
      if (first.empty()) first = text;
    if (!automatic) throw DataError(first);
    if (comm.rank() == 0) log_warning(first + "; reading from where the data is");
    return index;
  }
  for (const Container& c : wanted) index.move_container(c.path, copy_path(folder, c));
  return index;
}

}  // namespace chexnet
