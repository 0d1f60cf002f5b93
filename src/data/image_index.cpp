#include "chexnet/data/image_index.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/data/pack.hpp"

namespace chexnet {
namespace {

std::vector<Entry> parts_of(const Container& container, Stores& stores,
                            const ShowProgress& progress) {
  Store& store = stores.of(container.path);
  if (container.kind != ContainerKind::kPack)
    return container_entries(store, {container.path, container.size}, container.kind, progress);
  std::vector<Entry> entries;
  const PackReader pack(container.path, store);
  for (const auto& name : pack.shape().names) entries.push_back({.name = name, .window = {}});
  return entries;
}

// The parts of all containers that are no plain files, read by as many threads as there are cores:
// inflating an archive is work.
std::vector<std::vector<Entry>> all_parts(const std::vector<Container>& containers,
                                          Stores& stores) {
  std::vector<std::vector<Entry>> parts(containers.size());
  std::vector<std::size_t> wanted;
  std::uint64_t total = 0;
  for (std::size_t c = 0; c < containers.size(); ++c) {
    if (containers[c].kind == ContainerKind::kFile) continue;
    wanted.push_back(c);
    total += containers[c].size;
  }
  if (wanted.empty()) return parts;
  std::vector<std::atomic<std::uint64_t>> done(wanted.size());
  Progress progress(true);
  const double start = now_s();
  parallel_for(
      wanted.size(),
      static_cast<int>(std::min<std::size_t>(wanted.size(), std::thread::hardware_concurrency())),
      [&](std::size_t i) {
        parts[wanted[i]] =
            parts_of(containers[wanted[i]], stores, [&](std::uint64_t bytes) { done[i] = bytes; });
      },
      [&] {
        std::uint64_t bytes = 0;
        for (const auto& d : done) bytes += d;
        progress.show("indexing " + std::to_string(wanted.size()) + " archives, once: " +
                      share_and_time_left(static_cast<double>(bytes) / static_cast<double>(total),
                                          now_s() - start));
      });
  progress.clear();
  return parts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

}  // namespace

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<FoundImage> find_images(const std::vector<std::string>& sources, Stores& stores,
                                    std::vector<Container>& containers) {
  containers.clear();
  for (const auto& source : sources) {
    auto files = stores.of(source).list(source);
    std::ranges::sort(files, {}, &StoredFile::path);
    for (auto& file : files) {
      const ContainerKind kind = container_kind(file.path);
      if (!is_index_file(file.path)) containers.push_back({kind, std::move(file.path), file.size});
    }
  }
  auto parts = all_parts(containers, stores);
  std::vector<FoundImage> found;
  for (std::uint32_t c = 0; c < containers.size(); ++c) {
    if (containers[c].kind == ContainerKind::kFile) {
      found.push_back({containers[c].path, {c, 0, {}}});
      continue;
    }
    for (std::size_t i = 0; i < parts[c].size(); ++i) {
      Entry& entry = parts[c][i];
      std::string name = std::move(entry.name);
      entry.name.clear();
      found.push_back({std::move(name), {c, i, std::move(entry)}});
    }
  }
  return found;
}

ImageIndex ImageIndex::scan(const Manifest& manifest, const std::vector<std::uint32_t>& rows,
                            const std::vector<std::string>& sources, Stores& stores) {
  std::vector<Container> containers;
  const auto found = find_images(sources, stores, containers);
  std::vector<std::uint32_t> missing;
  ImageIndex index = match(manifest, rows, found, containers, missing);
  if (missing.empty()) return index;
  std::string examples;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, missing.size()); ++i)
    examples += (i > 0 ? ", " : "") + manifest.images[missing[i]];
  throw DataError(
      "[images] " + std::to_string(missing.size()) + " of " + std::to_string(rows.size()) +
      " images are missing below " + joined(sources) + ", e.g. " + examples +
      ". Hint: unpack all archives, check data.images, or train on lists of what is there");
}

ImageIndex ImageIndex::match(const Manifest& manifest, const std::vector<std::uint32_t>& rows,
                             const std::vector<FoundImage>& found,
                             const std::vector<Container>& containers,
                             std::vector<std::uint32_t>& missing) {
  ImageIndex index;
  std::unordered_map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < found.size(); ++i) by_name[last_part(found[i].name)].push_back(i);

  index.places_.resize(manifest.size());
  std::vector<std::uint32_t> kept(containers.size(), Place::kNowhere);  // old -> new number
  missing.clear();
  const auto where = [&](const FoundImage& image) {
    const Container& container = containers[image.place.container];
    return container.kind == ContainerKind::kFile ? container.path
                                                  : container.path + " (" + image.name + ")";
  };
  for (const auto row : rows) {
    const std::string& name = manifest.images[row];
    const FoundImage* match = nullptr;
    if (const auto candidates = by_name.find(last_part(name)); candidates != by_name.end()) {
      for (const std::size_t i : candidates->second) {
        const FoundImage& candidate = found[i];
        // CheXpert names are paths: the whole name must match, not only its end. Records and packs
        // may keep the end alone.
        if (candidate.name != name && !candidate.name.ends_with("/" + name) &&
            candidate.name != last_part(name))
          continue;
        if (match != nullptr && where(*match) != where(candidate))
          throw DataError("[images] " + name + " lies in two places: " + where(*match) + " and " +
                          where(candidate) + ". Hint: name only one of them in data.images");
        match = &candidate;
      }
    }
    if (match == nullptr) {
      missing.push_back(row);
      continue;
    }
    Place place = match->place;
    std::uint32_t& number = kept[place.container];
    if (number == Place::kNowhere) {
      number = static_cast<std::uint32_t>(index.containers_.size());
      index.containers_.push_back(containers[place.container]);
    }
    place.container = number;
    index.places_[row] = std::move(place);
  }
  return index;
}

ImageIndex ImageIndex::of_found(std::vector<FoundImage> found, std::vector<Container> containers) {
  ImageIndex index;
  index.containers_ = std::move(containers);
  for (auto& image : found) index.places_.push_back(std::move(image.place));
  return index;
}

void ImageIndex::move_container(const std::string& from, const std::string& to) {
  for (auto& c : containers_)
    if (c.path == from) c.path = to;
}

// Containers one a line, an empty line, then the entries of the places in the form of an index
// file, each named "row container number".
std::string ImageIndex::to_text() const {
  std::string text = std::to_string(places_.size()) + "\n";
  for (const auto& c : containers_)
    text += std::to_string(static_cast<int>(c.kind)) + "\t" + std::to_string(c.size) + "\t" +
            c.path + "\n";
  text += "\n";
  std::vector<Entry> entries;
  for (std::size_t row = 0; row < places_.size(); ++row) {
    if (places_[row].container == Place::kNowhere) continue;
    entries.push_back(places_[row].entry);
    entries.back().name = std::to_string(row) + " " + std::to_string(places_[row].container) + " " +
                          std::to_string(places_[row].number);
  }
  return text + entries_text(entries, ContainerKind::kTarGz, 0);  // the kind with every field
}

ImageIndex ImageIndex::from_text(const std::string& text) {
  ImageIndex index;
  char* end = nullptr;
  index.places_.resize(std::strtoull(text.c_str(), &end, 10));
  std::size_t at = text.find('\n') + 1;
  while (text[at] != '\n') {
    const std::size_t stop = text.find('\n', at);
    Container c;
    c.kind = static_cast<ContainerKind>(std::strtol(&text[at], &end, 10));
    c.size = std::strtoull(end + 1, &end, 10);
    c.path = text.substr(static_cast<std::size_t>(end + 1 - text.data()),
                         stop - static_cast<std::size_t>(end + 1 - text.data()));
    index.containers_.push_back(std::move(c));
    at = stop + 1;
  }
  for (auto& entry : entries_of_text(text.substr(at + 1), "the image index of rank 0")) {
    const std::size_t row = std::strtoull(entry.name.c_str(), &end, 10);
    Place& place = index.places_.at(row);
    place.container = static_cast<std::uint32_t>(std::strtoul(end, &end, 10));
    place.number = std::strtoull(end, &end, 10);
    entry.name.clear();
    place.entry = std::move(entry);
  }
  return index;
}

}  // namespace chexnet
