// What the paths of data.images hold: files, and the parts of containers; each
// container (or its index) is read through once.
#include "found_images.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/data/pack.hpp"
#include "chexnet/data/storage/damaged_container.hpp"

namespace chexnet {
namespace {

std::vector<Entry> parts_of(const StoredFile& file, Container& container,
                            Stores& stores, const ShowProgress& progress,
                            const ReportDamage& damaged) {
  Store& store = stores.of(file.path);
  if (container.kind != ContainerKind::kPack)
    return entries_before_damage(store, file, container.kind, progress,
                                 damaged);
  std::vector<Entry> entries;
  try {
    const PackReader pack(file.path, store);
    container.head_crc32c = pack.head_crc32c();
    for (const auto& name : pack.shape().names) {
      const PackEntry& source = pack.entry(entries.size());
      entries.push_back({.name = name,
                         .length = source.source_bytes,
                         .crc32c = source.source_crc32c,
                         .window = {}});
    }
  } catch (const DataError& e) {
    report_damage(damaged, e);
  }
  return entries;
}

// The parts of all containers that are no plain files, read by as many threads
// as there are cores: inflating an archive is work. `files` [container].
std::vector<std::vector<Entry>> all_parts(const std::vector<StoredFile>& files,
                                          std::vector<Container>& containers,
                                          Stores& stores, const Tick& tick,
                                          std::vector<std::string>* damage) {
  std::vector<std::vector<Entry>> parts(containers.size());
  std::vector<size_t> wanted;
  uint64_t total = 0;
  for (size_t c = 0; c < containers.size(); ++c) {
    if (containers[c].kind == ContainerKind::kFile) continue;
    wanted.push_back(c);
    total += containers[c].size;
  }
  if (wanted.empty()) return parts;
  std::vector<std::atomic<uint64_t>> done(wanted.size());
  Progress progress(true);
  const double start = now_s();
  parallel_for(
      wanted.size(),
      static_cast<int>(
          std::min<size_t>(wanted.size(), std::thread::hardware_concurrency())),
      [&](size_t i) {
        const size_t c = wanted[i];
        const auto show = [&](uint64_t bytes) {
          done[i] = bytes;
          tick();
        };
        ReportDamage note;
        if (damage != nullptr)
          note = [&](const std::string& message) { (*damage)[c] = message; };
        parts[c] = parts_of(files[c], containers[c], stores, show, note);
      },
      [&] {
        uint64_t bytes = 0;
        for (const auto& d : done) bytes += d;
        progress.show("indexing " + std::to_string(wanted.size()) +
                      " archives, once: " +
                      percent_and_time_left(static_cast<double>(bytes) /
                                                static_cast<double>(total),
                                            now_s() - start));
      });
  progress.clear();
  return parts;
}

}  // namespace

std::vector<FoundImage> find_undamaged_images(
    const std::vector<std::string>& sources, Stores& stores,
    std::vector<Container>& containers, const Tick& tick,
    std::vector<std::string>* damage) {
  containers.clear();
  std::vector<StoredFile> files;  // [container]
  Progress progress(true);
  const double start = now_s();
  for (const auto& source : sources) {
    auto listed = stores.of(source).list(source, [&] {
      tick();
      progress.show("listing " + source + ": " + readable_s(now_s() - start));
    });
    std::ranges::sort(listed, {}, &StoredFile::path);
    for (auto& file : listed) {
      if (is_index_file(file.path)) continue;
      containers.push_back({container_kind(file.path), file.path, file.size,
                            file.version, file.inode});
      files.push_back(std::move(file));
    }
  }
  progress.clear();
  if (damage != nullptr) damage->assign(containers.size(), "");
  auto parts = all_parts(files, containers, stores, tick, damage);
  std::vector<FoundImage> found;
  for (uint32_t c = 0; c < containers.size(); ++c) {
    if (containers[c].kind == ContainerKind::kFile) {
      found.push_back({containers[c].path, {c, 0, {}}});
      continue;
    }
    for (size_t i = 0; i < parts[c].size(); ++i) {
      Entry& entry = parts[c][i];
      std::string name = std::move(entry.name);
      entry.name.clear();
      found.push_back({std::move(name), {c, i, std::move(entry)}});
    }
  }
  return found;
}

std::vector<FoundImage> find_images(const std::vector<std::string>& sources,
                                    Stores& stores,
                                    std::vector<Container>& containers,
                                    const Tick& tick) {
  return find_undamaged_images(sources, stores, containers, tick, nullptr);
}

}  // namespace chexnet
