// Images inside .tar and .tar.gz files (NIH's images_001.tar.gz …
// images_012.tar.gz), read in place.
//
// A gzip stream can only be entered at a block boundary with the 32 KiB that
// precede it. One pass over the archive notes, for each member, the last
// boundary before its content and those bytes of the window that the content
// really refers to: hardly any, as images do not compress further. So a member
// costs one ranged read and the inflating of itself, and the notes stay small.
//
// A member that is named like an image (.png, .jpg, .jpeg) and is a link,
// sparse, or above kLargestImage is an error of the archive, reported after all
// of its other members; other members of these kinds are skipped. An archive
// must have its end mark (a block of zeros; tar writes two): without it nobody
// can tell whether members are missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chexnet/data/storage/damaged_container.hpp"
#include "chexnet/data/storage/entry.hpp"
#include "chexnet/data/storage/store.hpp"

namespace chexnet {

inline constexpr size_t kDeflateWindow = 32768;
// tar.gz: the most that may have to be inflated and dropped before a member,
// bytes.
inline constexpr uint64_t kFarthestStart = uint64_t{1} << 30;
// The most that the headers in front of a member's content may be, bytes.
inline constexpr uint64_t kLongestTarHead = uint64_t{4} << 20;

// Follows a tar stream (ustar, GNU long names, pax paths) given in pieces of
// any size.
class TarStream {
 public:
  // begin: a file's content starts with the next byte, and crc32c is that of
  // the `skip` bytes of headers before it; end: it is complete, and crc32c goes
  // on over the content. Neither is called for members that are not read.
  TarStream(std::string path, std::function<void(Entry&)> begin,
            std::function<void(Entry&)> end);
  void feed(std::span<const std::byte> bytes);
  // DataError when the archive stops inside a member or without its end mark,
  // or has an image that cannot be read.
  void finish() const;

 private:
  void header();
  void begin_member(std::span<const std::byte> header);
  const char* why_not_read() const;
  void cover(std::span<const std::byte> bytes);  // by the member's checksum
  void content(std::span<const std::byte> bytes);
  void end_of_content();
  void read_pax();

  std::string path_;
  std::function<void(Entry&)> begin_, end_;
  std::vector<std::byte> block_;  // a header being collected
  uint64_t position_ = 0;         // bytes fed
  uint64_t left_ = 0,
           pad_ = 0;  // of the content, and up to the next block
  char type_ = 0;
  bool wanted_ = false;  // the present member is a file that may be an image
  std::string meta_,
      long_name_;  // content of 'L' and 'x' members; the name they gave
  std::string sparse_name_;   // the same of a sparse file in pax form
  bool is_sparse_ = false;    // the next member is one
  bool is_extended_ = false;  // the next block goes on with its header
  uint64_t covered_ = 0;      // bytes of headers of the member so far
  uint32_t covered_crc32c_ = 0;
  std::string first_unread_;  // an image that cannot be read, and why
  size_t unread_ = 0;         // how many
  uint64_t long_size_ = 0;
  bool has_long_size_ = false, ended_ = false;
  Entry entry_;
};

// `damaged`: as entries_before_damage().
std::vector<Entry> tar_entries(Store& store, const StoredFile& file,
                               const ShowProgress& progress,
                               const ReportDamage& damaged = {});
// DataError also when a member cannot be reached within kFarthestStart. Where
// the checksum of all that was inflated is wrong, any member may be, so none is
// returned.
std::vector<Entry> tar_gz_entries(Store& store, const StoredFile& file,
                                  const ShowProgress& progress,
                                  const ReportDamage& damaged = {});

// The content of one member, not checked. `compressed`: the archive's bytes
// [entry.offset, entry.offset + entry.stored), which may end with the deflate
// stream: no trailer is needed after the last byte. DataError when they do not
// inflate to all of the content.
void inflate_member(std::span<const std::byte> compressed, const Entry& entry,
                    const std::string& path, std::vector<std::byte>& into);

}  // namespace chexnet
