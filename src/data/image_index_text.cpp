// The image index as rank 0 sends it to the others:
//
//   rows, number of containers
//   kind, size, CRC32C of the head,   a line a container, tabs between
//     version, inode, path
//   the entries in the form of an index file, each named "row container number"
#include <string_view>

#include "chexnet/core/error.hpp"
#include "chexnet/core/parsed_number.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/image_index.hpp"
#include "chexnet/data/storage/index_text.hpp"

namespace chexnet {
namespace {

const char* const kOrigin = "the image index of rank 0";
constexpr auto kLastKind = static_cast<uint64_t>(ContainerKind::kLast);

[[noreturn]] void damaged() {
  throw DataError(
      "[index] {}: a number that cannot be. Hint: is the network between the "
      "ranks sound?",
      kOrigin);
}

// Numbers and words of a text, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}
  std::string_view until(char mark) {
    const auto end = rest_.find(mark);
    if (end == std::string_view::npos) damaged();
    const auto found = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return found;
  }
  // At most `most`.
  uint64_t number(char mark, uint64_t most) {
    const auto text = until(mark);
    const auto value = parsed_number<uint64_t>(text);
    if (!value || *value > most) damaged();
    return *value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace

std::string ImageIndex::to_text() const {
  std::string text = std::to_string(locations_.size()) + "\t" +
                     std::to_string(containers_.size()) + "\n";
  for (const auto& c : containers_)
    text += std::to_string(static_cast<int>(c.kind)) + "\t" +
            std::to_string(c.size) + "\t" + std::to_string(c.head_crc32c) +
            "\t" + escaped(c.version) + "\t" + escaped(c.inode) + "\t" +
            escaped(c.path) + "\n";
  std::vector<Entry> entries;
  for (size_t row = 0; row < locations_.size(); ++row) {
    if (locations_[row].container == ImageLocation::kNowhere) continue;
    entries.push_back(locations_[row].entry);
    entries.back().name = std::to_string(row) + " " +
                          std::to_string(locations_[row].container) + " " +
                          std::to_string(locations_[row].number) + " ";
  }
  return text + all_fields_text(entries);
}

ImageIndex ImageIndex::from_text(const std::string& text) {
  ImageIndex index;
  Fields fields(text);
  index.locations_.resize(fields.number('\t', UINT32_MAX));
  const uint64_t containers = fields.number('\n', UINT32_MAX - 1);
  for (uint64_t i = 0; i < containers; ++i) {
    Container c;
    c.kind = static_cast<ContainerKind>(fields.number('\t', kLastKind));
    c.size = fields.number('\t', UINT64_MAX);
    c.head_crc32c = static_cast<uint32_t>(fields.number('\t', UINT32_MAX));
    c.version = unescaped(fields.until('\t'));
    c.inode = unescaped(fields.until('\t'));
    c.path = unescaped(fields.until('\n'));
    index.containers_.push_back(std::move(c));
  }
  for (auto& entry : entries_of_text(std::string(fields.rest()), kOrigin)) {
    Fields numbers(entry.name);
    const uint64_t row = numbers.number(' ', UINT32_MAX);
    if (row >= index.locations_.size()) damaged();
    ImageLocation& location = index.locations_[row];
    const uint64_t container = numbers.number(' ', UINT32_MAX - 1);
    if (container >= containers) damaged();
    location.container = static_cast<uint32_t>(container);
    location.number = numbers.number(' ', UINT64_MAX);
    const Container& in = index.containers_[container];
    if (!is_possible(entry, in.kind, in.size)) damaged();
    entry.name.clear();
    location.entry = std::move(entry);
  }
  return index;
}

}  // namespace chexnet
