// A tar file is blocks of 512 bytes: a header, the content filled up to whole
// blocks, and so on. 'L' (GNU) and 'x' (pax) members hold the name or size of
// the next member, and its checksum covers them and its header: whoever reads a
// member notices that it has another name than in the index.
//
//   block_ being filled -> header() -> left_ > 0: content
//                                   -> pad_ > 0: filling -> block_ …
#include "chexnet/data/storage/tar.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

constexpr size_t kBlock = 512;

// A number of a tar header: octal text, or base 256 when the first bit is set
// (GNU).
uint64_t number(std::span<const std::byte> field) {
  uint64_t value = 0;
  if ((field[0] & std::byte{0x80}) != std::byte{}) {
    for (const auto b : field.subspan(1))
      value = value << 8 | std::to_integer<uint64_t>(b);
    return value;
  }
  for (const auto b : field) {
    const char c = static_cast<char>(b);
    if (c >= '0' && c <= '7')
      value = value * 8 + static_cast<uint64_t>(c - '0');
    else if (c != ' ')
      break;
  }
  return value;
}

std::string text(std::span<const std::byte> field) {
  const auto* first = reinterpret_cast<const char*>(field.data());
  return {first, strnlen(first, field.size())};
}

// Of a header without a long name: ustar has a separate field for a prefix.
std::string short_name(std::span<const std::byte> header) {
  const std::string name = text(header.first(100));
  const bool is_ustar = std::memcmp(&header[257], "ustar\0", 6) == 0;
  const std::string prefix =
      is_ustar ? text(header.subspan(345, 155)) : std::string();
  return prefix.empty() ? name : prefix + "/" + name;
}

bool is_zeros(std::span<const std::byte> block) {
  return std::ranges::all_of(block,
                             [](std::byte b) { return b == std::byte{}; });
}

// The checksum counts its field as blanks.
unsigned header_sum(std::span<const std::byte> header) {
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i)
    sum += i >= 148 && i < 156 ? ' ' : std::to_integer<unsigned>(header[i]);
  return sum;
}

// Of headers that only describe the next member.
bool is_metadata(char type) {
  return type == 'L' || type == 'K' || type == 'x' || type == 'g';
}

bool is_file(char type) { return type == '0' || type == '\0' || type == '7'; }

bool is_named_like_image(const std::string& name) {
  const std::string lower = lowered(name);
  return lower.ends_with(".png") || lower.ends_with(".jpg") ||
         lower.ends_with(".jpeg");
}

}  // namespace

TarStream::TarStream(std::string path, std::function<void(Entry&)> begin,
                     std::function<void(Entry&)> end)
    : path_(std::move(path)), begin_(std::move(begin)), end_(std::move(end)) {}

void TarStream::feed(std::span<const std::byte> bytes) {
  while (!bytes.empty() && !ended_) {
    size_t used = 0;
    if (left_ > 0 && !is_extended_) {
      used = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
      content(bytes.first(used));
      left_ -= used;
      position_ += used;
      if (left_ == 0) end_of_content();
    } else if (pad_ > 0 && !is_extended_) {
      used = static_cast<size_t>(std::min<uint64_t>(pad_, bytes.size()));
      if (is_metadata(type_)) cover(bytes.first(used));
      pad_ -= used;
      position_ += used;
    } else {
      used = std::min(kBlock - block_.size(), bytes.size());
      block_.insert(block_.end(), bytes.begin(),
                    bytes.begin() + static_cast<ptrdiff_t>(used));
      position_ += used;
      if (block_.size() == kBlock) {
        header();
        block_.clear();
      }
    }
    bytes = bytes.subspan(used);
  }
}

void TarStream::header() {
  const std::span<const std::byte> h(block_);
  assert(h.size() == kBlock);
  if (is_extended_) {  // a sparse member's list of pieces, of any length
    is_extended_ = h[504] != std::byte{};
    return;
  }
  if (is_zeros(h)) {
    ended_ = true;
    return;
  }
  if (header_sum(h) != number(h.subspan(148, 8)))
    throw DataError(
        "[tar] {}: damaged tar header at byte {} of the archive. Hint: "
        "download it again",
        path_, position_ - kBlock);
  if (!is_metadata(type_)) covered_ = covered_crc32c_ = 0;
  cover(h);
  type_ = static_cast<char>(h[156]);
  left_ = has_long_size_ ? long_size_ : number(h.subspan(124, 12));
  pad_ = (kBlock - left_ % kBlock) % kBlock;
  meta_.clear();
  wanted_ = false;
  if (!is_metadata(type_)) return begin_member(h);
  if (left_ > (1 << 20) || covered_ > kLongestTarHead)
    throw DataError(
        "[tar] {}: a name of more than 1 MiB. Hint: is this a tar file?",
        path_);
}

void TarStream::begin_member(std::span<const std::byte> h) {
  std::string name = long_name_.empty() ? short_name(h) : long_name_;
  if (!sparse_name_.empty()) name = sparse_name_;
  is_extended_ = type_ == 'S' && h[482] != std::byte{};
  const char* const obstacle = why_not_read();
  wanted_ = is_file(type_) && obstacle == nullptr;
  if (obstacle != nullptr && is_named_like_image(name)) {
    if (unread_ == 0) first_unread_ = printable(name) + " " + obstacle;
    ++unread_;
  }
  if (wanted_) {
    entry_ = Entry();
    entry_.name = std::move(name);
    entry_.offset = position_;
    entry_.length = left_;
    entry_.skip = covered_;
    entry_.crc32c = covered_crc32c_;
    begin_(entry_);
  }
  long_name_.clear();
  sparse_name_.clear();
  has_long_size_ = is_sparse_ = false;
  if (left_ == 0) end_of_content();
}

// Null where nothing is in the way.
const char* TarStream::why_not_read() const {
  if (type_ == 'S' || is_sparse_) return "is a sparse member";
  if (type_ == '1') return "is a hard link";
  if (type_ == '2') return "is a symbolic link";
  if (type_ == '3' || type_ == '4' || type_ == '6')
    return "is a device or a pipe";
  return left_ > kLargestImage ? "is larger than 256 MiB" : nullptr;
}

void TarStream::cover(std::span<const std::byte> bytes) {
  covered_ += bytes.size();
  covered_crc32c_ = crc32c(bytes, covered_crc32c_);
}

void TarStream::content(std::span<const std::byte> bytes) {
  if (is_metadata(type_)) cover(bytes);
  if (type_ == 'L' || type_ == 'x')
    meta_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  else if (wanted_)
    entry_.crc32c = crc32c(bytes, entry_.crc32c);
}

void TarStream::end_of_content() {
  if (wanted_) return end_(entry_);
  if (type_ == 'L') long_name_ = meta_.c_str();  // up to its first NUL
  if (type_ == 'x') read_pax();
}

// Lines of "length key=value\n"; the length counts itself.
void TarStream::read_pax() {
  for (size_t at = 0; at < meta_.size();) {
    const size_t length = std::strtoul(&meta_[at], nullptr, 10);
    if (length < 5 || length > meta_.size() - at) return;
    const std::string line = meta_.substr(at, length - 1);
    at += length;

    const auto blank = line.find(' '), equals = line.find('=');
    if (blank == std::string::npos || equals == std::string::npos ||
        blank > equals)
      continue;
    const std::string key = line.substr(blank + 1, equals - blank - 1);
    const std::string value = line.substr(equals + 1);
    if (key == "path") long_name_ = value;
    if (key.starts_with("GNU.sparse.")) is_sparse_ = true;
    if (key == "GNU.sparse.name") sparse_name_ = value;
    if (key == "size") {
      long_size_ = std::strtoull(value.c_str(), nullptr, 10);
      has_long_size_ = true;
    }
  }
}

void TarStream::finish() const {
  const auto error = [&](const char* what) {
    return DataError(
        "[tar] {}: the archive {} at byte {}. Hint: download it again", path_,
        what, position_);
  };
  if (left_ > 0 || !block_.empty() || position_ == 0) throw error("is cut off");
  if (!ended_) throw error("stops without its end mark");
  if (unread_ == 0) return;
  const std::string more =
      unread_ > 1 ? " (and " + std::to_string(unread_ - 1) + " more such)" : "";
  throw DataError(
      "[tar] {}: the image {}{}, which is not read. Hint: pack it again from "
      "plain files: tar -h --hard-dereference, without --sparse",
      path_, first_unread_, more);
}

std::vector<Entry> tar_entries(Store& store, const StoredFile& file,
                               const ShowProgress& progress,
                               const ReportDamage& damaged) {
  std::vector<Entry> entries;
  TarStream tar(
      file.path, [](Entry&) {}, [&](Entry& e) { entries.push_back(e); });
  std::vector<std::byte> bytes;
  constexpr uint64_t kPiece = 8 << 20;
  try {
    for (uint64_t at = 0; at < file.size; at += kPiece) {
      store.read(file.path, at, std::min(kPiece, file.size - at), bytes);
      tar.feed(bytes);
      progress(at + bytes.size());
    }
    tar.finish();
  } catch (const DataError& e) {
    report_damage(damaged, e);
  }
  return entries;
}

}  // namespace chexnet
