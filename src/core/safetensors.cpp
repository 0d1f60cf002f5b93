// safetensors: uint64 length of the header, a JSON header, the tensors' bytes.
// A file is taken only when its tensors cover the data exactly, in any order,
// without a hole or an overlap: then a header that was changed does not go
// unnoticed. Every product of extents is checked for overflow first.
#include "chexnet/core/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checked_json.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/whole_number.hpp"

namespace chexnet {
namespace {

constexpr uint64_t kMaxHeader = 8'000'000;
constexpr uint64_t kMaxFile = uint64_t{1} << 32;
constexpr std::pair<ElementType, const char*> kTypeNames[] = {
    {ElementType::kF64, "F64"}, {ElementType::kF32, "F32"},
    {ElementType::kF16, "F16"}, {ElementType::kBF16, "BF16"},
    {ElementType::kI64, "I64"}, {ElementType::kU8, "U8"}};

const char* type_name(ElementType type) {
  for (const auto& [known, name] : kTypeNames)
    if (known == type) return name;
  return "";
}

// A file of a network holds a few hundred tensors, of an optimizer three times
// as many, of an ensemble up to 64 times. A header as large as the format
// allows (100,000,000 bytes) would need gigabytes.
constexpr JsonLimits kHeaderLimits{.depth = 8, .values = 1'000'000};

[[noreturn]] void refuse_file(const std::string& origin,
                              const std::string& what) {
  throw CheckpointError(
      "[safetensors] {}: {}. Hint: the file is damaged or of another format",
      origin, what);
}

// A file of torch.save(), by its first bytes: a zip, or before PyTorch 1.6 a
// pickle.
void refuse_pickle(const std::string& origin, uint64_t first_bytes) {
  constexpr uint64_t kZip = 0x04034b50, kPickle = 0x0280;
  if (first_bytes % (uint64_t{1} << 32) != kZip &&
      first_bytes % (uint64_t{1} << 16) != kPickle)
    return;
  throw CheckpointError(
      "[safetensors] {}: is of PyTorch's own format, which may hold code. "
      "Hint: "
      "scripts/reference/convert_weights.py {} {} makes a safetensors file of "
      "it, and runs none",
      origin, origin,
      std::filesystem::path(origin).replace_extension(".safetensors").string());
}

void check_lengths(const std::string& origin, uint64_t header, uint64_t file) {
  if (file > kMaxFile)
    refuse_file(origin,
                formatted("has {} bytes, more than any network here", file));
  if (header <= kMaxHeader && header <= file - 8) return;
  refuse_pickle(origin, header);
  refuse_file(origin, formatted("header length {} is impossible", header));
}

// Descriptions are JSON in a text, which others parse.
void check_nesting(const std::string& origin, const Metadata& metadata) {
  for (const auto& [name, value] : metadata) {
    const auto problem = json_problem(value, {.depth = 32, .values = SIZE_MAX});
    if (!problem.empty())
      refuse_file(origin, formatted("metadata '{}': {}", name, problem));
  }
}

}  // namespace

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kI64:
      return 8;
    case ElementType::kF32:
      return 4;
    case ElementType::kF16:
    case ElementType::kBF16:
      return 2;
    case ElementType::kU8:
      return 1;
  }
  return 0;
}

void write_safetensors(const std::filesystem::path& path,
                       const std::vector<NamedArray>& arrays,
                       const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& array : arrays) {
    header[array.name] = {
        {"dtype", type_name(array.type)},
        {"shape", array.shape},
        {"data_offsets", {offset, offset + array.data.size()}}};
    offset += array.data.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // data starts 8-byte aligned
  uint64_t length = text.size();
  OutputFile out(path);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(text);
  for (const auto& array : arrays) out.write(array.data);
  out.commit();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : origin_(path.string()) {
  try {
    // A hole in a file costs nothing on the disk, and all of it in memory.
    const FileStart start = read_start(path, 8);
    if (start.bytes.size() == 8) {
      uint64_t length = 0;
      std::memcpy(&length, start.bytes.data(), 8);
      check_lengths(origin_, length, start.size);
    }
    read_bytes(path, bytes_);
  } catch (const OutageError&) {
    throw;
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& e) {
    throw CheckpointError(e.what());
  }
  parse();
}
SafetensorsFile::SafetensorsFile(std::string origin,
                                 std::vector<std::byte> bytes)
    : origin_(std::move(origin)), bytes_(std::move(bytes)) {
  parse();
}

void SafetensorsFile::parse() {
  const auto refuse = [this](const std::string& what) {
    refuse_file(origin_, what);
  };
  if (bytes_.size() < 10) refuse("too short for a safetensors file");
  uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), 8);
  check_lengths(origin_, length, bytes_.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + 8,
                              length);
  if (!text.starts_with('{')) refuse("header does not start with '{'");
  const std::span<const std::byte> data = std::span(bytes_).subspan(8 + length);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  try {
    const nlohmann::json header = checked_json(text, kHeaderLimits);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = entry.get<Metadata>();
        check_nesting(origin_, metadata_);
        continue;
      }
      const auto dtype = entry.at("dtype").get<std::string>();
      const auto* known = std::ranges::find_if(
          kTypeNames, [&](const auto& pair) { return dtype == pair.second; });
      if (known == std::end(kTypeNames))
        refuse(formatted("tensor {} has unknown type {}", name, dtype));
      std::vector<int64_t> shape;
      for (const auto& extent : entry.at("shape"))
        shape.push_back(whole_number<int64_t>(extent));
      uint64_t count = 1;
      for (const auto extent : shape) {
        if (extent < 0 || __builtin_mul_overflow(
                              count, static_cast<uint64_t>(extent), &count))
          refuse("tensor " + name + " has an impossible shape");
      }
      uint64_t size = 0;
      if (__builtin_mul_overflow(count, uint64_t{element_bytes(known->first)},
                                 &size))
        refuse("tensor " + name + " has an impossible shape");
      const auto& offsets = entry.at("data_offsets");
      const auto begin = whole_number<uint64_t>(offsets.at(0));
      const auto end = whole_number<uint64_t>(offsets.at(1));
      if (begin > end || end > data.size() || end - begin != size)
        refuse("tensor " + name + " does not fit its data offsets");
      ranges.emplace_back(begin, end);
      arrays_.push_back({name, known->first, shape, data.subspan(begin, size)});
    }
  } catch (const CheckpointError&) {
    throw;
  } catch (const std::exception& e) {
    refuse(std::string("header is not valid: ") + e.what());
  }
  std::ranges::sort(ranges);
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at)
      refuse(formatted("tensor data has a hole or an overlap at byte {}", at));
    at = end;
  }
  if (at != data.size())
    refuse(
        formatted("file has {} data bytes, its tensors {}", data.size(), at));
  for (size_t i = 0; i < arrays_.size(); ++i) index_[arrays_[i].name] = i;
}

SafetensorsFile SafetensorsFile::part(const std::string& prefix) const {
  SafetensorsFile part;
  part.origin_ = origin_;
  part.metadata_ = metadata_;
  for (const auto& array : arrays_) {
    if (!array.name.starts_with(prefix)) continue;
    NamedArray& own = part.arrays_.emplace_back(array);
    own.name.erase(0, prefix.size());
    part.index_[own.name] = part.arrays_.size() - 1;
  }
  return part;
}

const NamedArray* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &arrays_[found->second];
}

}  // namespace chexnet
