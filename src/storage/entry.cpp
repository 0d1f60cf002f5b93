#include "chexnet/storage/entry.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string_view>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/storage/tar.hpp"
#include "chexnet/storage/tfrecord.hpp"

namespace chexnet {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kKindNames[] = {"file", "tar", "tar.gz", "tfrecord", "pack"};

std::string first_line(ContainerKind kind, std::uint64_t size) {
  return "chexnet-index 1 " + std::string(kKindNames[static_cast<std::size_t>(kind)]) + " " +
         std::to_string(size);
}

void put_hex(std::string& text, unsigned value, int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) text += kDigits[value >> (4 * i) & 15];
}

class LineReader {
 public:
  LineReader(std::string_view line, const std::string& origin) : rest_(line), origin_(origin) {}
  std::string_view field() {
    const auto end = rest_.find('\t');
    const auto found = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return found;
  }
  template <class Number>
  Number number(int base = 10) {
    return parse<Number>(field(), base);
  }
  template <class Number>
  Number parse(std::string_view text, int base) {
    Number value{};
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size())
      throw DataError("[index] " + origin_ + ": damaged index file. Hint: delete it");
    return value;
  }

 private:
  std::string_view rest_;
  const std::string& origin_;
};

// Beside the container; else in the cache folder under a name made of the path.
std::string index_path(const std::string& container) { return container + ".index"; }
std::string cached_index_path(const std::string& container) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = cache != nullptr  ? fs::path(cache)
                        : home != nullptr ? fs::path(home) / ".cache"
                                          : fs::temp_directory_path();
  return (base / "chexnet-train" / "index" / (sha256_hex(container).substr(0, 32) + ".index"))
      .string();
}

bool read_index(Store& store, const std::string& path, const std::string& wanted,
                std::vector<Entry>& entries) {
  if (!store.exists(path)) return false;
  std::vector<std::byte> bytes;
  store.read_whole(path, bytes);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(wanted + "\n")) return false;  // of another container, or another version
  try {
    entries = entries_of_text(text, path);
  } catch (const DataError& e) {
    log_warning(std::string(e.what()) + "; reading the container again");
    return false;
  }
  return true;
}

void write_index(const std::string& container, const std::string& text) {
  if (!is_s3(container)) {
    try {
      return write_atomically(index_path(container), text);
    } catch (const CheckpointError&) {  // a read-only data folder is usual
    }
  }
  try {
    const std::string path = cached_index_path(container);
    fs::create_directories(fs::path(path).parent_path());
    write_atomically(path, text);
  } catch (const std::exception& e) {
    log_warning("the index of " + container +
                " cannot be kept, so each start reads it through: " + e.what());
  }
}

}  // namespace

ContainerKind container_kind(const std::string& path) {
  static const std::regex shard(R"(.*-\d{5}-of-\d{5})");
  const auto ends = [&](const char* suffix) { return path.ends_with(suffix); };
  if (ends(".tar")) return ContainerKind::kTar;
  if (ends(".tar.gz") || ends(".tgz")) return ContainerKind::kTarGz;
  if (ends(".pack")) return ContainerKind::kPack;
  if (ends(".tfrecord") || ends(".tfrecords") || std::regex_match(path, shard))
    return ContainerKind::kTfrecord;
  return ContainerKind::kFile;
}

bool is_index_file(const std::string& path) { return path.ends_with(".index"); }

std::string entries_text(const std::vector<Entry>& entries, ContainerKind kind,
                         std::uint64_t container_size) {
  std::string text = first_line(kind, container_size) + "\n";
  for (const auto& e : entries) {
    text += e.name + "\t" + std::to_string(e.offset) + "\t" + std::to_string(e.length) + "\t";
    put_hex(text, e.crc32c, 8);
    if (kind == ContainerKind::kTarGz) {
      text += "\t" + std::to_string(e.stored) + "\t" + std::to_string(e.skip) + "\t" +
              std::to_string(e.bit) + "\t";
      for (const auto& [at, value] : e.window) {
        put_hex(text, at, 4);
        put_hex(text, value, 2);
      }
    }
    text += "\n";
  }
  text += "crc32c ";
  put_hex(text, crc32c(std::as_bytes(std::span(text.data(), text.size()))), 8);
  return text + "\n";
}

std::vector<Entry> entries_of_text(const std::string& text, const std::string& origin) {
  const auto damaged = [&]() -> DataError {
    return DataError("[index] " + origin + ": damaged index file. Hint: delete it");
  };
  const std::size_t sum = text.rfind("crc32c ");
  if (sum == std::string::npos || text.size() != sum + 16 || text.back() != '\n') throw damaged();
  LineReader end(std::string_view(text).substr(sum + 7, 8), origin);
  // The sum covers everything before its eight digits.
  if (end.number<std::uint32_t>(16) != crc32c(std::as_bytes(std::span(text.data(), sum + 7))))
    throw damaged();
  std::vector<Entry> entries;
  std::size_t at = text.find('\n') + 1;
  while (at < sum) {
    const std::size_t stop = text.find('\n', at);
    LineReader line(std::string_view(text).substr(at, stop - at), origin);
    at = stop + 1;
    Entry e;
    e.name = line.field();
    e.offset = line.number<std::uint64_t>();
    e.length = line.number<std::uint64_t>();
    e.crc32c = line.number<std::uint32_t>(16);
    if (const auto stored = line.field(); !stored.empty()) {
      e.stored = line.parse<std::uint64_t>(stored, 10);
      e.skip = line.number<std::uint32_t>();
      e.bit = line.number<int>();
      const auto window = line.field();
      for (std::size_t i = 0; i + 6 <= window.size(); i += 6)
        e.window.emplace_back(line.parse<std::uint16_t>(window.substr(i, 4), 16),
                              line.parse<std::uint8_t>(window.substr(i + 4, 2), 16));
    }
    entries.push_back(std::move(e));
  }
  return entries;
}

std::vector<Entry> container_entries(Store& store, const StoredFile& file, ContainerKind kind,
                                     const ShowProgress& progress) {
  const std::string wanted = first_line(kind, file.size);
  std::vector<Entry> entries;
  if (read_index(store, index_path(file.path), wanted, entries)) return entries;
  const auto local = local_store();
  if (read_index(*local, cached_index_path(file.path), wanted, entries)) return entries;
  switch (kind) {
    case ContainerKind::kTar:
      entries = tar_entries(store, file, progress);
      break;
    case ContainerKind::kTarGz:
      entries = tar_gz_entries(store, file, progress);
      break;
    case ContainerKind::kTfrecord:
      entries = tfrecord_entries(store, file, progress);
      break;
    default:
      return entries;
  }
  write_index(file.path, entries_text(entries, kind, file.size));
  return entries;
}

}  // namespace chexnet
