// The safetensors format on plain memory: 8-byte little-endian header length,
// JSON header, contiguous data. Reading obeys the format's rules (header starts
// with '{', no duplicate keys, offsets contiguous without holes, total = file
// size) and our limits (header 8 MB, file 4 GiB), each broken one being a
// CheckpointError that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "chexnet/core/element_type.hpp"

namespace chexnet {

// A named array; `data` belongs to somebody else (the writer's caller, or
// SafetensorsFile).
struct NamedArray {
  std::string name;
  ElementType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // row-major
};

using Metadata = std::map<std::string, std::string>;

// Writes a complete, fsynced file; `arrays` in the order given.
void write_safetensors(const std::filesystem::path& path,
                       const std::vector<NamedArray>& arrays,
                       const Metadata& metadata);

// A file read whole and checked; the arrays view memory owned by this object.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  SafetensorsFile(std::string origin, std::vector<std::byte> bytes);
  const std::vector<NamedArray>& arrays() const { return arrays_; }
  const Metadata& metadata() const { return metadata_; }
  const NamedArray* find(const std::string& name) const;  // null when absent
  // Of the arrays whose names begin with `prefix`, without it, and with the
  // same metadata. It views memory of this object.
  SafetensorsFile part(const std::string& prefix) const;

 private:
  SafetensorsFile() = default;
  void parse();
  std::string origin_;
  std::vector<std::byte> bytes_;
  std::vector<NamedArray> arrays_;
  std::map<std::string, size_t> index_;
  Metadata metadata_;
};

}  // namespace chexnet
