// Two names meet: that of a row in the table ("a/1.png", "1.png") and that of
// an image that was found
// ("/data/set/a/1.png", or a member of an archive). NameTable says which rows
// an image may be for; choose() wants exactly one image for a row and one row
// for an image, and else names both locations.
#include "chexnet/data/image_index.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "name_table.hpp"

namespace chexnet {
namespace {

// Where an image is, for messages.
std::string where(const FoundImage& image,
                  const std::vector<Container>& containers) {
  const Container& container = containers[image.location.container];
  if (container.kind == ContainerKind::kFile) return printable(container.path);
  return printable(container.path + " (" + image.name + ", number " +
                   std::to_string(image.location.number) + ")");
}

// The same bytes: found twice because a folder is named twice, or through
// links.
bool is_same_location(const FoundImage& a, const FoundImage& b,
                      const std::vector<Container>& containers) {
  const Container& in_a = containers[a.location.container];
  const Container& in_b = containers[b.location.container];
  const bool linked = !in_a.inode.empty() && in_a.inode == in_b.inode;
  return a.location.number == b.location.number &&
         (in_a.path == in_b.path || linked);
}

// The rows a found image may be for. The name of a file is the path by which
// data.images reached it, however that was spelled, and its absolute path.
std::vector<uint32_t> rows_for(const FoundImage& image,
                               const Container& container, NameTable& names) {
  auto rows = names.rows_for(image.name);
  const bool is_local = container.kind == ContainerKind::kFile &&
                        image.name.find("://") == std::string::npos;
  if (is_local) {
    const auto absolute =
        std::filesystem::absolute(image.name).lexically_normal().string();
    if (absolute != image.name)
      std::ranges::copy(names.rows_for(absolute), std::back_inserter(rows));
  }
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// For each row of the manifest the image that is for it, or null.
std::vector<const FoundImage*> choose(
    const Manifest& manifest, const std::vector<uint32_t>& rows,
    const std::vector<FoundImage>& found,
    const std::vector<Container>& containers) {
  std::vector<const FoundImage*> chosen(manifest.size());
  NameTable names(manifest, rows);
  for (const FoundImage& image : found) {
    const auto fitting =
        rows_for(image, containers[image.location.container], names);
    if (fitting.size() > 1)
      throw DataError(
          "[images] {} is the place of two images of the table, those of {} "
          "and {}. Hint: name both in the table with their folders",
          where(image, containers), manifest.place(fitting[0]),
          manifest.place(fitting[1]));
    for (const auto row : fitting) {
      const FoundImage*& place = chosen[row];
      if (place != nullptr && !is_same_location(*place, image, containers))
        throw DataError(
            "[images] {} is in two places: {} and {}. Hint: name only one of "
            "them in data.images",
            printable(manifest.images[row]), where(*place, containers),
            where(image, containers));
      if (place == nullptr) place = &image;
    }
  }
  return chosen;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

}  // namespace

ImageIndex ImageIndex::scan(const Manifest& manifest,
                            const std::vector<uint32_t>& rows,
                            const std::vector<std::string>& sources,
                            Stores& stores, const Tick& tick) {
  ImageIndex index = scan_present(manifest, rows, sources, stores, tick);
  std::vector<uint32_t> missing;
  std::ranges::copy_if(rows, std::back_inserter(missing),
                       [&](uint32_t row) { return !index.has(row); });
  if (missing.empty()) return index;
  std::string examples;
  for (size_t i = 0; i < std::min<size_t>(3, missing.size()); ++i)
    examples += (i > 0 ? ", " : "") + manifest.place(missing[i]);
  const auto folders =
      std::ranges::count(manifest.images[missing.front()], '/');
  throw AbsentError(
      "[images] {} of {} images are missing below {}, e.g. those of {}. Hint: "
      "unpack all archives, check data.images, or leave out what is not there "
      "with data.missing=skip. A path must end with the whole name in the "
      "table (the first has {}); a name stored without its folders "
      "counts only where no other image has the same",
      missing.size(), rows.size(), joined(sources), examples,
      counted(folders, "folder"));
}

ImageIndex ImageIndex::scan_present(const Manifest& manifest,
                                    const std::vector<uint32_t>& rows,
                                    const std::vector<std::string>& sources,
                                    Stores& stores, const Tick& tick) {
  std::vector<Container> containers;
  const auto found = find_images(sources, stores, containers, tick);
  std::vector<uint32_t> missing;
  return match(manifest, rows, found, containers, missing);
}

ImageIndex ImageIndex::match(const Manifest& manifest,
                             const std::vector<uint32_t>& rows,
                             const std::vector<FoundImage>& found,
                             const std::vector<Container>& containers,
                             std::vector<uint32_t>& missing) {
  const std::vector<const FoundImage*> chosen =
      choose(manifest, rows, found, containers);
  ImageIndex index;
  index.locations_.resize(manifest.size());
  std::vector<uint32_t> kept(containers.size(),
                             ImageLocation::kNowhere);  // old -> new number
  missing.clear();
  for (const auto row : rows) {
    if (chosen[row] == nullptr) {
      missing.push_back(row);
      continue;
    }
    ImageLocation location = chosen[row]->location;
    uint32_t& number = kept[location.container];
    if (number == ImageLocation::kNowhere) {
      number = static_cast<uint32_t>(index.containers_.size());
      Container& container =
          index.containers_.emplace_back(containers[location.container]);
      if (container.kind == ContainerKind::kFile)
        container.version = container.inode = "";
    }
    location.container = number;
    index.locations_[row] = std::move(location);
  }
  return index;
}

ImageIndex ImageIndex::of_found(std::vector<FoundImage> found,
                                std::vector<Container> containers) {
  // A container without an image may be one that cannot be opened.
  ImageIndex index;
  std::vector<uint32_t> kept(containers.size(), ImageLocation::kNowhere);
  for (auto& image : found) {
    uint32_t& number = kept[image.location.container];
    if (number == ImageLocation::kNowhere) {
      number = static_cast<uint32_t>(index.containers_.size());
      index.containers_.push_back(
          std::move(containers[image.location.container]));
    }
    image.location.container = number;
    index.locations_.push_back(std::move(image.location));
  }
  return index;
}

void ImageIndex::move_container(const std::string& from,
                                const std::string& to) {
  for (auto& c : containers_)
    if (c.path == from) c.path = to;
}

}  // namespace chexnet
