// Numbers are decimal, checksums and windows hexadecimal, names escaped, so a
// line is a line whatever a name holds. The last line is the checksum of all
// before it: a text that was cut off is noticed.
#include "chexnet/data/storage/index_text.hpp"

#include <charconv>
#include <span>
#include <string_view>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "chexnet/data/storage/tfrecord.hpp"

namespace chexnet {
namespace {

const char* kind_name(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::kFile:
      return "file";
    case ContainerKind::kTar:
      return "tar";
    case ContainerKind::kTarGz:
      return "tar.gz";
    case ContainerKind::kTfrecord:
      return "tfrecord";
    case ContainerKind::kPack:
      return "pack";
  }
  return "";
}

void put_hex(std::string& text, unsigned value, int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) text += kDigits[value >> (4 * i) & 15];
}

enum class Fields {
  kCommon,  // name, offset, length, CRC32C
  kSkip,    // what lies before the content too
  kAll,     // and those of inflating
};

Fields fields_of(ContainerKind kind) {
  if (kind == ContainerKind::kTar) return Fields::kSkip;
  return kind == ContainerKind::kTarGz ? Fields::kAll : Fields::kCommon;
}

void put_entry(std::string& text, const Entry& e, Fields fields) {
  text += escaped(e.name) + "\t" + std::to_string(e.offset) + "\t" +
          std::to_string(e.length) + "\t";
  put_hex(text, e.crc32c, 8);
  if (fields != Fields::kCommon) text += "\t" + std::to_string(e.skip);
  if (fields == Fields::kAll) {
    text +=
        "\t" + std::to_string(e.stored) + "\t" + std::to_string(e.bit) + "\t";
    for (const auto& [at, value] : e.window) {
      put_hex(text, at, 4);
      put_hex(text, value, 2);
    }
  }
  text += "\n";
}

class LineReader {
 public:
  LineReader(std::string_view line, const std::string& origin)
      : rest_(line), origin_(origin) {}

  Entry entry() {
    Entry e;
    e.name = unescaped(field());
    e.offset = number<uint64_t>();
    e.length = number<uint64_t>();
    e.crc32c = parse<uint32_t>(field(), 16);
    if (at_end_) return e;
    e.skip = number<uint64_t>();
    if (at_end_) return e;
    e.stored = number<uint64_t>();
    e.bit = number<int>();
    const auto window = field();
    if (!at_end_ || window.size() % kWindowDigits != 0) damaged();
    for (size_t i = 0; i < window.size(); i += kWindowDigits)
      e.window.emplace_back(parse<uint16_t>(window.substr(i, 4), 16),
                            parse<uint8_t>(window.substr(i + 4, 2), 16));
    return e;
  }

  template <class Number>
  Number parse(std::string_view text, int base) {
    Number value{};
    const auto result =
        std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size())
      damaged();
    return value;
  }

 private:
  // Four of the position, two of the value.
  static constexpr size_t kWindowDigits = 6;

  std::string_view field() {
    if (at_end_) damaged();
    const auto end = rest_.find('\t');
    const auto found = rest_.substr(0, end);
    at_end_ = end == std::string_view::npos;
    rest_ = at_end_ ? std::string_view() : rest_.substr(end + 1);
    return found;
  }
  template <class Number>
  Number number() {
    return parse<Number>(field(), 10);
  }
  [[noreturn]] void damaged() const {
    throw DataError("[index] {}: damaged index file. Hint: delete it", origin_);
  }

  std::string_view rest_;
  const std::string& origin_;
  bool at_end_ = false;
};

// True when `offset + count` is at most `size`, without overflow.
bool lies_inside(uint64_t offset, uint64_t count, uint64_t size) {
  return offset <= size && count <= size - offset;
}

bool is_possible_gz(const Entry& e, uint64_t container_size) {
  // Deflate's longest match is 258 bytes for two bits at least (zlib, "Maximum
  // Expansion Factor").
  constexpr uint64_t kMostExpansion = 1032;
  // What does not compress grows by a few bytes a block; the entry covers some
  // bytes too many.
  constexpr uint64_t kSlack = 16 << 20;
  if (!lies_inside(e.offset, e.stored, container_size)) return false;
  if (e.length > kLargestImage || e.skip > kFarthestStart) return false;
  const uint64_t inflated = e.skip + e.length;
  if (inflated > e.stored * kMostExpansion || e.stored > 2 * inflated + kSlack)
    return false;
  if (e.bit < 0 || e.bit > 7) return false;
  for (const auto& [at, value] : e.window)
    if (at >= kDeflateWindow) return false;
  return true;
}

std::string text_with_sum(const std::string& head,
                          const std::vector<Entry>& entries, Fields fields) {
  std::string text = head + "\n";
  for (const auto& entry : entries) put_entry(text, entry, fields);
  text += "crc32c ";
  put_hex(text, crc32c(std::as_bytes(std::span(text.data(), text.size()))), 8);
  return text + "\n";
}

}  // namespace

std::string index_head(ContainerKind kind, const StoredFile& file) {
  return "chexnet-index 3 " + std::string(kind_name(kind)) + " " +
         std::to_string(file.size) + " " + escaped(file.version);
}

std::string index_text(const std::vector<Entry>& entries, ContainerKind kind,
                       const StoredFile& file) {
  return text_with_sum(index_head(kind, file), entries, fields_of(kind));
}

std::string all_fields_text(const std::vector<Entry>& entries) {
  return text_with_sum("chexnet-index 3 all-fields", entries, Fields::kAll);
}

std::vector<Entry> entries_of_text(const std::string& text,
                                   const std::string& origin) {
  const auto damaged = [&] {
    return DataError("[index] {}: damaged index file. Hint: delete it", origin);
  };
  const size_t sum = text.rfind("crc32c ");
  if (sum == std::string::npos || text.size() != sum + 16 ||
      text.back() != '\n')
    throw damaged();
  LineReader end({}, origin);
  // The sum covers everything before its eight digits.
  const auto wanted =
      end.parse<uint32_t>(std::string_view(text).substr(sum + 7, 8), 16);
  if (wanted != crc32c(std::as_bytes(std::span(text.data(), sum + 7))))
    throw damaged();
  std::vector<Entry> entries;
  size_t at = text.find('\n') + 1;
  while (at < sum) {
    const size_t stop = text.find('\n', at);
    if (stop > sum) throw damaged();
    entries.push_back(
        LineReader(std::string_view(text).substr(at, stop - at), origin)
            .entry());
    at = stop + 1;
  }
  return entries;
}

bool is_possible(const Entry& entry, ContainerKind kind,
                 uint64_t container_size) {
  switch (kind) {
    case ContainerKind::kTar:
      return entry.length <= kLargestImage && entry.skip <= entry.offset &&
             entry.skip <= kLongestTarHead &&
             lies_inside(entry.offset, entry.length, container_size);
    case ContainerKind::kTarGz:
      return is_possible_gz(entry, container_size);
    case ContainerKind::kTfrecord:
      return lies_inside(entry.offset, kRecordHead + kRecordTail,
                         container_size) &&
             entry.length <=
                 container_size - entry.offset - kRecordHead - kRecordTail;
    case ContainerKind::kFile:
    case ContainerKind::kPack:
      return true;  // they have no entries
  }
  return false;
}

}  // namespace chexnet
