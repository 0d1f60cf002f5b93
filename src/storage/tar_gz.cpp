#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/storage/tar.hpp"

namespace chexnet {
namespace {

constexpr std::size_t kWindow = 32768;
constexpr std::uint64_t kPiece = 4 << 20;     // bytes read at a time
constexpr int kRawDeflate = -15, kGzip = 31;  // window bits, as zlib counts them
using Window = std::array<std::uint8_t, kWindow>;

[[noreturn]] void damaged(const std::string& path, const z_stream& z, std::uint64_t at) {
  throw DataError("[tar] " + path + ": damaged gzip data near byte " + std::to_string(at) + " (" +
                  (z.msg != nullptr ? z.msg : "cut off") + "). Hint: download it again");
}

// zlib's state, reset rather than made anew.
class Inflater {
 public:
  Inflater() { inflateInit2(&z, kRawDeflate); }
  ~Inflater() { inflateEnd(&z); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream z{};
};

// Inflates `skip` bytes that nobody wants, then `length` into `into`.
void inflate_from(std::span<const std::byte> packed, int bit, const Window& window,
                  std::uint32_t skip, std::size_t length, const std::string& path,
                  std::uint64_t offset, std::vector<std::byte>& into) {
  thread_local Inflater inflater;
  thread_local std::vector<std::byte> unwanted;
  z_stream& z = inflater.z;
  inflateReset2(&z, kRawDeflate);
  const auto start = [&] {
    return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  };
  z.next_in = start();
  z.avail_in = static_cast<uInt>(packed.size());
  if (bit > 0) {
    if (packed.empty()) damaged(path, z, offset);
    inflatePrime(&z, bit, std::to_integer<int>(packed[0]) >> (8 - bit));
    ++z.next_in;
    --z.avail_in;
  }
  inflateSetDictionary(&z, window.data(), kWindow);
  unwanted.resize(skip);
  into.resize(length);
  bool gzip = false;
  for (auto [out, size] : {std::pair{unwanted.data(), std::size_t{skip}}, {into.data(), length}}) {
    z.next_out = reinterpret_cast<Bytef*>(out);
    z.avail_out = static_cast<uInt>(size);
    while (z.avail_out > 0) {
      const int rc = inflate(&z, Z_SYNC_FLUSH);
      if (rc == Z_STREAM_END) {
        // Another gzip member follows; a raw stream leaves its trailer of 8 bytes.
        const uInt trailer = gzip ? 0 : 8;
        if (z.avail_in <= trailer) damaged(path, z, offset);
        z.next_in += trailer;
        z.avail_in -= trailer;
        inflateReset2(&z, kGzip);
        gzip = true;
      } else if (rc != Z_OK) {
        damaged(path, z, offset + static_cast<std::uint64_t>(z.next_in - start()));
      }
    }
  }
}

// Which bytes of the window the content comes from: decoded once with a window that holds the low
// half of each position and twice with the high half, plain and inverted. Where the last two
// differ the byte came from the window, and the first two tell from where.
void find_window(std::span<const std::byte> packed, const Window& window, const std::string& path,
                 Entry& entry) {
  Window low, high, inverted;
  for (std::size_t i = 0; i < kWindow; ++i) {
    low[i] = static_cast<std::uint8_t>(i);
    high[i] = static_cast<std::uint8_t>(i >> 8);
    inverted[i] = static_cast<std::uint8_t>(~(i >> 8));
  }
  std::array<std::vector<std::byte>, 3> out;
  const Window* windows[] = {&low, &high, &inverted};
  for (std::size_t i = 0; i < 3; ++i)
    inflate_from(packed, entry.bit, *windows[i], entry.skip, entry.length, path, entry.offset,
                 out[i]);
  std::vector<bool> used(kWindow);
  for (std::size_t i = 0; i < entry.length; ++i) {
    if (out[1][i] == out[2][i]) continue;
    used[std::to_integer<std::size_t>(out[1][i]) << 8 | std::to_integer<std::size_t>(out[0][i])] =
        true;
  }
  for (std::size_t i = 0; i < kWindow; ++i)
    if (used[i]) entry.window.emplace_back(static_cast<std::uint16_t>(i), window[i]);
}

// A place where inflating can start.
struct Point {
  std::uint64_t in = 0, out = 0;  // bytes of the .gz file and of what it holds
  int bit = 0;
  Window window{};
};

}  // namespace

void inflate_member(std::span<const std::byte> packed, const Entry& entry, const std::string& path,
                    std::vector<std::byte>& into) {
  thread_local Window window{};
  for (const auto& [at, value] : entry.window) window[at] = value;
  inflate_from(packed, entry.bit, window, entry.skip, entry.length, path, entry.offset, into);
}

std::vector<Entry> tar_gz_entries(Store& store, const StoredFile& file,
                                  const ShowProgress& progress) {
  std::vector<Entry> entries;
  std::vector<std::pair<Entry, Window>> finished;  // within the bytes fed last
  Point point;                                     // the last block boundary
  Window begun{};                                  // point.window when the current member began
  TarStream tar(
      file.path,
      [&](Entry& e) {
        e.skip = static_cast<std::uint32_t>(e.offset - point.out);
        e.offset = point.in - (point.bit > 0 ? 1 : 0);
        e.bit = point.bit;
        begun = point.window;
      },
      [&](Entry& e) { finished.emplace_back(e, begun); });
  Inflater inflater;
  z_stream& z = inflater.z;
  inflateReset2(&z, kGzip);
  std::vector<std::byte> packed, again;
  std::vector<std::byte> out(kWindow + (1 << 20));  // the window, then what is inflated next
  std::uint64_t read = 0, out_total = 0;
  bool ended = true;
  while (read < file.size) {
    store.read(file.path, read, std::min(kPiece, file.size - read), packed);
    if (packed.empty()) break;
    z.next_in = reinterpret_cast<Bytef*>(packed.data());
    z.avail_in = static_cast<uInt>(packed.size());
    while (z.avail_in > 0) {
      ended = false;
      std::byte* fresh = out.data() + kWindow;
      z.next_out = reinterpret_cast<Bytef*>(fresh);
      z.avail_out = static_cast<uInt>(out.size() - kWindow);
      const int rc = inflate(&z, Z_BLOCK);
      const std::uint64_t in = read + packed.size() - z.avail_in;
      if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) damaged(file.path, z, in);
      const std::size_t made = out.size() - kWindow - z.avail_out;
      tar.feed(std::span(fresh, made));
      out_total += made;
      std::memmove(out.data(), out.data() + made, kWindow);
      for (auto& [entry, window] : finished) {
        entry.stored = in - entry.offset;
        store.read(file.path, entry.offset, entry.stored, again);
        find_window(again, window, file.path, entry);
        entries.push_back(std::move(entry));
      }
      finished.clear();
      if (rc == Z_STREAM_END) {
        ended = true;
        // Zeros may follow the last member; other members go on where it stopped.
        if (z.avail_in > 0 && *z.next_in != 0x1f) {
          z.avail_in = 0;
          break;
        }
        inflateReset2(&z, kGzip);
      } else if ((z.data_type & 128) != 0 && (z.data_type & 64) == 0) {
        point.in = in;
        point.out = out_total;
        point.bit = z.data_type & 7;
        std::memcpy(point.window.data(), out.data(), kWindow);
      }
    }
    read += packed.size();
    progress(read);
  }
  if (!ended) damaged(file.path, z, read);
  tar.finish();
  return entries;
}

}  // namespace chexnet
