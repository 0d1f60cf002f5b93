// The text form of a container's entries: an index file, and what rank 0 sends
// to the others.
//
//   chexnet-index 3 KIND SIZE VERSION   of the container (StoredFile)
//   name, offset, length, CRC32C        a line per entry, tabs between; tar has
//                                       skip too, tar.gz skip, stored, bit and
//                                       window
//   crc32c XXXXXXXX                     of all the lines above
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chexnet/data/storage/entry.hpp"

namespace chexnet {

// VERSION may be left out to ask for any.
std::string index_head(ContainerKind kind, const StoredFile& file);
std::string index_text(const std::vector<Entry>& entries, ContainerKind kind,
                       const StoredFile& file);
// Entries of several containers, each with all of its fields, under a first
// line of no container.
std::string all_fields_text(const std::vector<Entry>& entries);
// DataError naming `origin` when the text is damaged.
std::vector<Entry> entries_of_text(const std::string& text,
                                   const std::string& origin);

// Whether an entry can be of a container of this kind and size: it is inside,
// and what it asks for in memory is bounded by the bytes there are.
bool is_possible(const Entry& entry, ContainerKind kind,
                 uint64_t container_size);

}  // namespace chexnet
