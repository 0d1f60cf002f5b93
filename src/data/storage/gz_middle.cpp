// Which bytes before a point does a member refer to? We do not parse deflate
// for it, but inflate the gzip stream with windows whose bytes say where they
// are.
//
//   position   0x1234 -> low 0x34, high 0x12, inverted 0xED
//   output     a literal is the same in all three; a byte of the window is not:
//              high != inverted
//
// Copies of copies carry their marks on, so references through skipped bytes
// are found as well.
#include "gz_middle.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

constexpr size_t kTrailer = 8;             // CRC-32 and length, RFC 1952
constexpr uint64_t kReadAtOnce = 4 << 20;  // bytes read at a time
constexpr size_t kChunk = 1 << 16;         // bytes inflated at a time
constexpr size_t kMostAtOnce = 1 << 30;    // zlib counts in 32 bits

// The positions of the window that one member refers to.
class UsedPositions {
 public:
  void add(size_t at) {
    if (used_[at]) return;
    used_[at] = true;
    found_.push_back(static_cast<uint16_t>(at));
  }
  // In order; begins anew.
  std::vector<uint16_t> take() {
    for (const auto at : found_) used_[at] = false;
    std::ranges::sort(found_);
    return std::exchange(found_, {});
  }

 private:
  std::vector<bool> used_ = std::vector<bool>(kDeflateWindow);
  std::vector<uint16_t> found_;
};

// Which bytes of the window the content comes from: decoded once with a window
// that holds the low half of each position and twice with the high half, plain
// and inverted. Where the last two differ the byte came from the window, and
// the first two tell from where.
class MarkedStreams {
 public:
  MarkedStreams(Store& store, const StoredFile& file, const GzPoint& point,
                uint64_t end)
      : store_(store), file_(file), at_(point.first_byte()), end_(end) {
    DeflateWindow low, high, inverted;
    for (size_t i = 0; i < kDeflateWindow; ++i) {
      low[i] = static_cast<uint8_t>(i);
      high[i] = static_cast<uint8_t>(i >> 8);
      inverted[i] = static_cast<uint8_t>(~(i >> 8));
    }
    streams_[0].start(point.bit, low);
    streams_[1].start(point.bit, high);
    streams_[2].start(point.bit, inverted);
    for (auto& chunk : chunks_) chunk.resize(kChunk);
  }

  // Inflates up to `most` bytes and returns how many; at least one.
  size_t next(size_t most) {
    for (;;) {
      const size_t made = inflate(std::min(most, kChunk));
      if (made > 0) return made;
      if (at_ >= end_) gzip_is_damaged(file_.path, at_, "cut off");
      store_.read(file_.path, at_, std::min(kReadAtOnce, end_ - at_), piece_);
      if (piece_.empty()) gzip_is_damaged(file_.path, at_, "cut off");
      rest_ = piece_;
      at_ += piece_.size();
    }
  }
  bool from_window(size_t i) const { return chunks_[1][i] != chunks_[2][i]; }
  size_t position(size_t i) const {
    return (std::to_integer<size_t>(chunks_[1][i]) << 8 |
            std::to_integer<size_t>(chunks_[0][i])) %
           kDeflateWindow;
  }

 private:
  size_t inflate(size_t most) {
    std::span<const std::byte> left = rest_;
    size_t made = 0;
    for (size_t s = 0; s < streams_.size(); ++s) {
      left = rest_;
      std::span<std::byte> out = std::span(chunks_[s]).first(most);
      if (!streams_[s].run(left, out))
        gzip_is_damaged(file_.path, at_, "no deflate data");
      made = most - out.size();  // of all three the same
    }
    rest_ = left;
    return made;
  }

  Store& store_;
  const StoredFile& file_;
  uint64_t at_, end_;  // of the bytes still to be read
  std::vector<std::byte> piece_;
  std::span<const std::byte> rest_;  // of piece_
  std::array<GzMiddle, 3> streams_;
  std::array<std::vector<std::byte>, 3> chunks_;
};

}  // namespace

void gzip_is_damaged(const std::string& path, uint64_t at, const char* what) {
  throw DataError(
      "[tar] {}: damaged gzip data near byte {} ({}). Hint: download it again "
      "(and delete its .index file)",
      path, at, what);
}

void GzMiddle::start(int bit, const DeflateWindow& window) {
  assert(bit >= 0 && bit < 8);
  inflateReset2(&z_, kRawDeflate);
  inflateSetDictionary(&z_, window.data(), kDeflateWindow);
  bit_ = bit;
  gzip_ = false;
  trailer_ = 0;
}

void GzMiddle::pass_over_trailer(std::span<const std::byte>& in) {
  const size_t count = std::min(trailer_, in.size());
  in = in.subspan(count);
  trailer_ -= count;
  if (trailer_ == 0) inflateReset2(&z_, kGzip);
}

bool GzMiddle::run(std::span<const std::byte>& in, std::span<std::byte>& out) {
  if (bit_ > 0 && !in.empty()) {
    inflatePrime(&z_, bit_, std::to_integer<int>(in.front()) >> (8 - bit_));
    in = in.subspan(1);
    bit_ = 0;
  }
  while (!out.empty() && bit_ == 0) {
    if (trailer_ > 0) {
      if (in.empty()) return true;
      pass_over_trailer(in);
      continue;
    }
    const size_t offered = std::min(in.size(), kMostAtOnce);
    const size_t room = std::min(out.size(), kMostAtOnce);
    z_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    z_.avail_in = static_cast<uInt>(offered);
    z_.next_out = reinterpret_cast<Bytef*>(out.data());
    z_.avail_out = static_cast<uInt>(room);
    const int rc = inflate(&z_, Z_SYNC_FLUSH);
    in = in.subspan(offered - z_.avail_in);
    out = out.subspan(room - z_.avail_out);
    if (rc == Z_BUF_ERROR) return true;  // it needs more
    if (rc == Z_STREAM_END) {
      trailer_ = gzip_ ? 0 : kTrailer;
      gzip_ = true;
      if (trailer_ == 0) inflateReset2(&z_, kGzip);
    } else if (rc != Z_OK) {
      return false;
    }
  }
  return true;
}

void find_windows(Store& store, const StoredFile& file, const GzPoint& point,
                  std::span<Entry> members) {
  if (members.empty()) return;
  uint64_t end = 0;
  for (const Entry& e : members) end = std::max(end, e.offset + e.stored);
  MarkedStreams marked(store, file, point, end);
  UsedPositions used;
  uint64_t at = 0;  // bytes inflated since the point
  for (Entry& e : members) {
    const uint64_t stop = e.skip + e.length;
    while (at < stop) {
      // Up to the content, then up to its end.
      const bool inside = at >= e.skip;
      const uint64_t left = (inside ? stop : e.skip) - at;
      const size_t made =
          marked.next(static_cast<size_t>(std::min<uint64_t>(left, kChunk)));
      for (size_t i = 0; inside && i < made; ++i)
        if (marked.from_window(i)) used.add(marked.position(i));
      at += made;
    }
    for (const auto position : used.take())
      e.window.emplace_back(position, point.window[position]);
  }
}

}  // namespace chexnet
