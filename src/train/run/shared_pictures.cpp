#include "shared_pictures.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <span>
#include <vector>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/parallel.hpp"
#include "chexnet/core/text_parts.hpp"

namespace chexnet {
namespace {

constexpr uint64_t kEndBytes = 4096;

struct Candidate {
  uint32_t row;
  const Split* split;
};
using Candidates = std::vector<Candidate>;

bool of_two_splits(const Candidates& images) {
  return std::ranges::any_of(images, [&](const Candidate& c) {
    return c.split != images.front().split;
  });
}

// The bytes of an image: how many they are (0: nothing is known), and what
// identifies them: a checksum, or else where they end in a local file.
struct Content {
  uint64_t length = 0;
  std::string sum{};
  uint64_t end = 0;
  bool has_crc32c = false;  // `sum` is that
};

std::string crc32c_text(uint32_t sum) {
  return "crc32c " + std::to_string(sum);
}

Content content_of(const ImageIndex& index, uint32_t row) {
  const ImageLocation& place = index.location(row);
  const Container& container = index.containers()[place.container];
  const Entry& entry = place.entry;
  switch (container.kind) {
    case ContainerKind::kFile:  // an object's version is its ETag
      if (is_s3(container.path)) return {container.size, container.version};
      return {container.size, "", container.size};
    case ContainerKind::kTar:
      if (is_s3(container.path)) return {};
      return {entry.length, "", entry.offset + entry.length};
    case ContainerKind::kTarGz:
    case ContainerKind::kPack:
      return {entry.length, crc32c_text(entry.crc32c), 0, true};
    case ContainerKind::kTfrecord:
      return {};
  }
  return {};
}

// `whole`: of local files a CRC32C of all bytes, else a sum of their end.
// Empty: unreadable.
std::string sum_of(const ImageIndex& index, uint32_t row, bool whole) {
  const Content content = content_of(index, row);
  if (!content.sum.empty()) return content.sum;
  std::string bytes(
      whole ? content.length : std::min(content.length, kEndBytes), '\0');
  const auto& container = index.containers()[index.location(row).container];
  std::ifstream file(container.path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(content.end - bytes.size()));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    return "";
  if (!whole) return sha256_hex(bytes);
  return crc32c_text(crc32c(std::as_bytes(std::span(bytes))));
}

// One checksum identifies all of them.
bool need_crc32c(const ImageIndex& index, const Candidates& images) {
  return std::ranges::any_of(images, [&](const Candidate& image) {
    return content_of(index, image.row).has_crc32c;
  });
}

}  // namespace

SharedPictures find_shared_pictures(const Dataset& dataset, int threads,
                                    size_t most,
                                    const std::function<void()>& tick) {
  const Splits& splits = dataset.splits;
  const ImageIndex& index = dataset.images->index();
  SharedPictures found;
  std::map<uint64_t, Candidates> by_length;
  for (const Split* split : {&splits.train, &splits.val, &splits.test})
    for (const auto row : split->rows) {
      if (!index.has(row)) continue;
      if (const auto length = content_of(index, row).length; length > 0)
        by_length[length].push_back({row, split});
      else
        ++found.unknown;
    }
  std::erase_if(by_length,
                [](const auto& same) { return !of_two_splits(same.second); });

  struct Read {
    uint64_t length;
    Candidate image;
    bool whole;
  };
  std::vector<Read> read;
  for (const auto& [length, images] : by_length) {
    found.alike += images.size();
    if (read.size() + images.size() > most) continue;
    const bool whole = need_crc32c(index, images);
    for (const auto& image : images) read.push_back({length, image, whole});
  }
  found.compared = read.size();
  std::vector<std::string> sums(read.size());
  parallel_for(
      read.size(), threads,
      [&](size_t i) {
        sums[i] = sum_of(index, read[i].image.row, read[i].whole);
      },
      tick);

  std::map<std::pair<uint64_t, std::string>, Candidates> same;
  for (size_t i = 0; i < read.size(); ++i)
    if (!sums[i].empty())
      same[{read[i].length, sums[i]}].push_back(read[i].image);
  const auto text = [&](const Candidate& image) {
    return dataset.manifest.images[image.row] + " (" + image.split->name + ")";
  };
  for (const auto& group : same) {
    const Candidates& images = group.second;
    // In the order train, val, test, so the first is of another split.
    const auto others =
        std::ranges::find_if(images, [&](const Candidate& image) {
          return image.split != images.front().split;
        });
    found.count += static_cast<size_t>(images.end() - others);
    if (others != images.end() && found.example.empty())
      found.example = text(images.front()) + " = " + text(*others);
  }
  return found;
}

void warn_of_shared_pictures(const SharedPictures& found) {
  if (found.count > 0)
    log_warning("[split] " + std::to_string(found.count) +
                (found.count == 1 ? " image of validation or test is"
                                  : " images of validation or test are") +
                " in another split under another name, as " + found.example +
                ": figures of them are too good. Hint: `inspect` lists all "
                "groups of equal pictures; data.exclude takes images out");
  if (found.compared < found.alike)
    log_info("[split] " + std::to_string(found.compared) + " of the " +
             std::to_string(found.alike) +
             " images that could be in two splits were compared. Hint: "
             "`inspect` compares all");
  if (found.unknown > 0)
    log_info("[split] " + std::to_string(found.unknown) +
             " images in TFRecords, or in archives of an object store, were "
             "not looked at for copies in another split. Hint: `inspect` "
             "compares all");
}

}  // namespace chexnet
