// How a member of a .tar.gz is reached without what lies before it:
//
//   .gz file    | block | block | block |  block  | block |
//                               ^point       inflating can start at its first
//                                            bit, given the 32 KiB before it:
//   inflated    ................[32 KiB]|<- skip ->|<- length: the content ->|
//                                ^window
//
// The indexer inflates the archive once and keeps the last point and its
// window. Where a member's content begins, it notes the point (offset, bit) and
// how far after it the content lies (skip). Of the window only those bytes are
// kept that the content's back references reach, directly or through the
// skipped bytes: find_windows() tells which. Most images refer to none.
//
// out_ is [window, 32 KiB | fresh bytes]: what was inflated is moved down, so
// that the window always lies in front of the next bytes.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <deque>
#include <string_view>

#include "chexnet/core/error.hpp"
#include "chexnet/data/storage/tar.hpp"
#include "gz_middle.hpp"

namespace chexnet {
namespace {

constexpr uint64_t kPiece = 4 << 20;  // bytes read at a time
constexpr size_t kFresh = 1 << 18;    // bytes inflated at a time

// The members that start from one point: their windows are found in one pass
// over it.
struct Group {
  GzPoint point;
  std::vector<Entry> members;
};

// One pass over a .tar.gz file.
class Indexer {
 public:
  Indexer(Store& store, const StoredFile& file)
      : store_(store),
        file_(file),
        tar_(
            file.path, [this](Entry& e) { begin(e); },
            [this](Entry& e) { end(e); }),
        out_(kDeflateWindow + kFresh) {
    inflateInit2(&z_, kGzip);
  }
  ~Indexer() { inflateEnd(&z_); }
  Indexer(const Indexer&) = delete;
  Indexer& operator=(const Indexer&) = delete;

  std::vector<Entry> run(const ShowProgress& progress,
                         const ReportDamage& damaged) {
    try {
      read(progress);
    } catch (const DataError& e) {
      report_damage(damaged, e);
      if (!trusted_) return {};
      set_stored();
    }
    finish_groups(0);
    return std::move(entries_);
  }

 private:
  void read(const ShowProgress& progress) {
    while (read_ < file_.size) {
      store_.read(file_.path, read_, std::min(kPiece, file_.size - read_),
                  compressed_);
      if (compressed_.empty()) break;
      inflate_piece();
      read_ += compressed_.size();
      progress(read_);
    }
    if (!complete_) gzip_is_damaged(file_.path, read_, "cut off");
    tar_.finish();
  }

  void begin(Entry& e) {
    assert(e.offset >= point_.out);
    e.crc32c = 0;  // the headers may lie before the point: they are not covered
    e.skip = e.offset - point_.out;
    if (e.skip > kFarthestStart)
      throw DataError(
          "[tar] {}: the member at byte {} of what it holds has no place near "
          "before it where inflating can start. Hint: unpack it and pack it "
          "again with gzip, or as .tar",
          file_.path, e.offset);
    e.offset = point_.first_byte();
    e.bit = point_.bit;
    if (groups_.empty() || groups_.back().point.in != point_.in)
      groups_.push_back({point_, {}});
  }

  void end(Entry& e) {
    assert(!groups_.empty());
    Group& group = groups_.back();
    ended_.emplace_back(&group, group.members.size());
    group.members.push_back(std::move(e));
  }

  void inflate_piece() {
    z_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
    z_.avail_in = static_cast<uInt>(compressed_.size());
    while (z_.avail_in > 0) {
      complete_ = false;
      z_.next_out = reinterpret_cast<Bytef*>(out_.data() + kDeflateWindow);
      z_.avail_out = static_cast<uInt>(kFresh);
      const int rc = inflate(&z_, Z_BLOCK);
      const uint64_t in = read_ + compressed_.size() - z_.avail_in;
      if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
        const std::string_view what = z_.msg != nullptr ? z_.msg : "cut off";
        trusted_ = !what.ends_with("check");  // of data, length or head
        gzip_is_damaged(file_.path, in, what.data());
      }
      take(kFresh - z_.avail_out, in);
      const bool at_boundary =
          (z_.data_type & 128) != 0 && (z_.data_type & 64) == 0;
      if (rc == Z_STREAM_END) {
        if (!next_gzip_member()) return;
      } else if (at_boundary) {
        set_point(in);
      }
    }
  }

  // The `made` bytes after the window, inflated from `in` bytes of the file.
  void take(size_t made, uint64_t in) {
    needed_ = in;
    tar_.feed(std::span(out_).subspan(kDeflateWindow, made));
    out_total_ += made;
    std::memmove(out_.data(), out_.data() + made, kDeflateWindow);
    set_stored();
    finish_groups(1);
  }

  // Of the members that ended in the bytes fed last.
  void set_stored() {
    for (const auto& [group, number] : ended_) {
      Entry& e = group->members[number];
      e.stored = needed_ - e.offset;
    }
    ended_.clear();
  }

  // Zeros may follow the last gzip member; others go on where it stopped.
  bool next_gzip_member() {
    complete_ = true;
    if (z_.avail_in > 0 && *z_.next_in != 0x1f) return false;
    inflateReset2(&z_, kGzip);
    return true;
  }

  void set_point(uint64_t in) {
    point_.in = in;
    point_.out = out_total_;
    point_.bit = z_.data_type & 7;
    std::memcpy(point_.window.data(), out_.data(), kDeflateWindow);
  }

  // All but the last `kept`, which may still get members.
  void finish_groups(size_t kept) {
    while (groups_.size() > kept) {
      Group& group = groups_.front();
      find_windows(store_, file_, group.point, group.members);
      std::ranges::move(group.members, std::back_inserter(entries_));
      groups_.pop_front();
    }
  }

  Store& store_;
  const StoredFile& file_;
  TarStream tar_;
  z_stream z_{};
  std::vector<std::byte> compressed_,
      out_;  // out_: the window, then what is inflated next
  uint64_t read_ = 0, out_total_ = 0;  // bytes of the file, and inflated
  uint64_t needed_ = 0;   // bytes of the file that the bytes fed last needed
  bool trusted_ = true;   // no checksum of what was inflated was wrong
  bool complete_ = true;  // no gzip member is open
  GzPoint point_;         // the last block boundary
  // Members that ended in the bytes fed last.
  std::vector<std::pair<Group*, size_t>> ended_;
  std::vector<Entry> entries_;
  // The last one's point may be that of the open member.
  std::deque<Group> groups_;
};

}  // namespace

void inflate_member(std::span<const std::byte> compressed, const Entry& entry,
                    const std::string& path, std::vector<std::byte>& into) {
  thread_local DeflateWindow window{};
  thread_local GzMiddle stream;
  thread_local std::vector<std::byte> unwanted(1 << 16);
  for (const auto& [at, value] : entry.window) {
    if (at >= kDeflateWindow)
      gzip_is_damaged(path, entry.offset, "a window position beyond it");
    window[at] = value;
  }
  stream.start(entry.bit, window);
  into.resize(entry.length);
  const auto inflate = [&](std::span<std::byte> out) {
    if (!stream.run(compressed, out))
      gzip_is_damaged(path, entry.offset, "no deflate data");
    if (!out.empty()) gzip_is_damaged(path, entry.offset, "cut off");
  };
  for (uint64_t left = entry.skip; left > 0;) {
    const auto count = std::min<uint64_t>(left, unwanted.size());
    inflate(std::span(unwanted).first(static_cast<size_t>(count)));
    left -= count;
  }
  inflate(into);
}

std::vector<Entry> tar_gz_entries(Store& store, const StoredFile& file,
                                  const ShowProgress& progress,
                                  const ReportDamage& damaged) {
  return Indexer(store, file).run(progress, damaged);
}

}  // namespace chexnet
