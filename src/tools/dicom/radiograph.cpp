// A file is read twice: its attributes alone, which may refuse it, then with
// its pixels. GDCM takes the memory for a value before it reads it, however
// long the file says that it is: each time there is as much as a file of this
// size, and a picture of this one, can need.
#include "radiograph.hpp"

#include <gdcmImageReader.h>
#include <gdcmTrace.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>

#include "attributes.hpp"
#include "chest.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "decoding.hpp"
#include "display.hpp"
#include "memory_bound.hpp"

namespace chexnet {
namespace {

// Of a file: its bytes as GDCM reads and copies them, and what it takes
// besides.
constexpr int64_t kCopiesOfFile = 4;
constexpr int64_t kOtherBytes = int64_t{64} << 20;
// Of a picture: stored values, their doubles, gray pixels.
constexpr int64_t kBytesOfPixel = 32;
// The thread of a decoder: its stack and what malloc reserves for it.
constexpr int64_t kDecoderBytes = int64_t{256} << 20;

struct Head {
  Skip skip = Skip::kNone;
  std::string note = {};
  int64_t pixels = 0;
  bool compressed = false;
};

[[noreturn]] void fail(const std::string& path, const std::string& what,
                       const char* hint) {
  throw DataError("[dicom] {}: {}. Hint: {}", path, what, hint);
}

bool has_magic(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    fail(path, "no such file", "is the path right?");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "cannot be read", "check its permissions");
  char head[132] = {};
  in.read(head, sizeof head);
  return in.gcount() == sizeof head && std::memcmp(head + 128, "DICM", 4) == 0;
}

// The pixels' cells in the host's byte order. GDCM takes values to begin at bit
// 0 and cuts off what is above them, so others (`shift`) are read as they lie
// in the file.
std::vector<char> cells_of(const gdcm::Image& image, const gdcm::DataSet& set,
                           const std::string& path, int shift) {
  std::vector<char> cells(image.GetBufferLength());
  if (shift == 0) {
    const DecoderMessages messages;
    if (!image.GetBuffer(cells.data()))
      fail(path, "its pixels cannot be decoded", "is it cut off?");
    const std::string said = messages.first_line();
    if (!said.empty())
      fail(path, "its pixels are damaged (" + said + ")", "fetch it again");
    return cells;
  }
  const gdcm::ByteValue* stored = bytes_of(set, {0x7fe0, 0x0010});
  const gdcm::TransferSyntax& syntax = image.GetTransferSyntax();
  const bool is_plain = !syntax.IsEncapsulated() &&
                        syntax.GetSwapCode() == gdcm::SwapCode::LittleEndian;
  if (!is_plain || stored == nullptr || stored->GetLength() < cells.size())
    fail(path, "its values begin above bit 0 of their cells",
         "that is read without compression and in little-endian order alone: "
         "gdcmconv --raw");
  std::memcpy(cells.data(), stored->GetPointer(), cells.size());
  return cells;
}

// A value may have fewer bits than its cell. The others are cut off (old files
// keep overlays there), and the sign is the highest bit of the value.
// Stored values as doubles.
std::vector<double> stored_values(const gdcm::Image& image,
                                  const gdcm::DataSet& set,
                                  const std::string& path, size_t count) {
  const gdcm::PixelFormat format = image.GetPixelFormat();
  const int bits = format.GetBitsStored();
  const bool is_signed = format.GetPixelRepresentation() != 0;
  // As the file says: GDCM's own high bit is always that of values from bit 0
  // on, and of compressed pixels its other figures are the codec's.
  const bool says_it = set.FindDataElement(gdcm::Tag(0x0028, 0x0102));
  const int shift = says_it ? short_of(set, 0x0028, 0x0102) + 1 -
                                  short_of(set, 0x0028, 0x0101)
                            : 0;
  if (shift < 0 || (shift > 0 && shift + bits > format.GetBitsAllocated()))
    fail(path, "its high bit does not fit its stored bits", "fetch it again");
  const std::vector<char> buffer = cells_of(image, set, path, shift);
  std::vector<double> values(count);
  const auto widen = [&](uint32_t raw) {
    raw >>= shift;
    if (bits < 32) raw &= (1u << bits) - 1;
    if (is_signed && bits < 32 && (raw >> (bits - 1) & 1) != 0)
      raw |= ~0u << bits;
    return is_signed ? static_cast<double>(static_cast<int32_t>(raw))
                     : static_cast<double>(raw);
  };
  const size_t bytes = format.GetBitsAllocated() / 8;
  if ((bytes != 1 && bytes != 2 && bytes != 4) || buffer.size() < count * bytes)
    fail(path, formatted("has {} bits a pixel", format.GetBitsAllocated()),
         "8, 16 and 32 are read");
  for (size_t i = 0; i < count; ++i) {
    uint32_t raw = 0;
    std::memcpy(&raw, &buffer[i * bytes],
                bytes);  // gdcm hands over host byte order
    values[i] = widen(raw);
  }
  return values;
}

// The view's code (PS3.16 CID 4010): by its number in SNOMED CT, or by its
// English name, which has other numbers in older schemes. A picture of someone
// who lies on a side is frontal.
bool has_lateral_code(const gdcm::DataSet& set) {
  const auto items = items_of(set, {0x0054, 0x0220});
  if (!items) return false;
  const gdcm::DataSet& item = items->GetItem(1).GetNestedDataSet();
  const std::string number = text_of(item, 0x0008, 0x0100);
  if (number == "399173006" || number == "399198007") return true;
  const std::string name = lowered(text_of(item, 0x0008, 0x0104));
  const bool lies = name.find("decubitus") != std::string::npos;
  return name.find("lateral") != std::string::npos && !lies;
}

bool is_lateral(const gdcm::DataSet& set) {
  constexpr std::array kCodes = {"ll", "rl", "llo", "rlo", "lateral", "lat"};
  const std::string view = lowered(text_of(set, 0x0018, 0x5101));
  return std::ranges::find(kCodes, view) != kCodes.end() ||
         has_lateral_code(set);
}

// By its attributes alone, so before its pixels are taken into memory.
// Skip::kNone: to be read.
Head read_head(const std::string& path, const RadiographLimits& limits) {
  gdcm::Reader reader;
  reader.SetFileName(path.c_str());
  if (!reader.ReadUpToTag(gdcm::Tag(0x7fe0, 0x0000))) {
    if (!has_magic(path)) return {Skip::kNotDicom};
    fail(path, "is damaged", "fetch it again");
  }
  const gdcm::DataSet& set = reader.GetFile().GetDataSet();
  const int64_t rows = short_of(set, 0x0028, 0x0010);
  const int64_t columns = short_of(set, 0x0028, 0x0011);
  if (rows < 1 || columns < 1)
    fail(path, "has no picture", "is it a report or a directory?");
  if (columns > limits.max_pixels / rows)
    fail(path, formatted("is {} x {} pixels", columns, rows),
         "chexnet-dicom takes a larger --max-pixels, if the file is to be "
         "trusted");
  const WhatIsShown shown = what_is_shown(set);
  std::string note = shown.note;
  for (const auto& other : {shown.other_modality, shown.other_body_part})
    note = joined_notes(note, other);
  if (!limits.any_dicom && !shown.other_modality.empty())
    return {Skip::kNotXray, note};
  if (!limits.any_dicom && !shown.other_body_part.empty())
    return {Skip::kOtherBodyPart, note};
  double frames = 1;
  number_of(text_of(set, 0x0028, 0x0008), frames);
  if (frames > 1) return {Skip::kMultiFrame};
  if (text_of(set, 0x0028, 0x0301) == "YES") return {Skip::kBurnedIn};
  if (is_lateral(set)) return {Skip::kLateral};
  if (!text_of(set, 0x0028, 0x0004).starts_with("MONOCHROME"))
    return {Skip::kNotGray};
  return {
      Skip::kNone, note, rows * columns,
      reader.GetFile().GetHeader().GetDataSetTransferSyntax().IsEncapsulated()};
}

// While this lives, GDCM's warnings go to an ostream, also where it throws.
struct WarningsTo {
  explicit WarningsTo(std::ostream& stream) {
    gdcm::Trace::SetWarningStream(stream);
    gdcm::Trace::SetWarning(true);
  }
  ~WarningsTo() {
    gdcm::Trace::SetWarning(false);
    gdcm::Trace::SetWarningStream(std::cerr);
  }
  WarningsTo(const WarningsTo&) = delete;
  WarningsTo& operator=(const WarningsTo&) = delete;
};

// GDCM fills up pixels that are cut off, and tells so in a warning only: the
// first of pixels as they are and of a sequence of fragments that ends in the
// middle of a tag, the second of a fragment. A sequence whose fragments are all
// whole may lack its end.
bool is_cut_off(const std::string& warnings) {
  const auto has = [&](const char* text) {
    return warnings.find(text) != std::string::npos;
  };
  return has("Incomplete Pixel Data") || has("Fragment could not be read");
}

void read_whole_picture(const std::string& path, gdcm::ImageReader& reader) {
  std::ostringstream warnings;
  bool whole = false;
  {
    const WarningsTo kept(warnings);
    reader.SetFileName(path.c_str());
    whole = reader.Read();
  }
  if (is_cut_off(warnings.str()))
    fail(path, "its pixels are cut off", "fetch it again");
  if (whole) return;
  const gdcm::DataSet& set = reader.GetFile().GetDataSet();
  for (const uint16_t element : {0x0008, 0x0009})
    if (set.FindDataElement(gdcm::Tag(0x7fe0, element)))
      fail(path, "its pixels are floating-point numbers",
           "chexnet-dicom reads whole numbers only");
  fail(path, "its picture cannot be read", "is it cut off?");
}

// GDCM copies as many bytes as the picture should have, however few there are.
bool is_too_short(const gdcm::Image& image, const gdcm::DataSet& set) {
  const gdcm::TransferSyntax& syntax = image.GetTransferSyntax();
  if (syntax == gdcm::TransferSyntax::RLELossless)
    return is_run_length_cut_off(image, set);
  if (syntax.IsEncapsulated()) return false;  // its decoder notices
  const gdcm::ByteValue* there = bytes_of(set, {0x7fe0, 0x0010});
  return there != nullptr && there->GetLength() < image.GetBufferLength();
}

// `read`, with `bytes` of memory. GDCM tells that it got none as it tells of
// any damage, so the reason is added here.
template <class Read>
auto within(int64_t bytes, const std::string& path, int64_t file_bytes,
            const Read& read) {
  const MemoryBound bound(bytes);
  const auto fail_of_memory = [&] {
    fail(path,
         formatted("asks for more memory than a file of {} bytes can need",
                   file_bytes),
         "is it damaged? Fetch it again");
  };
  try {
    return read();
  } catch (const DataError&) {
    if (bound.reached()) fail_of_memory();
    throw;
  } catch (const std::bad_alloc&) {
    fail_of_memory();
    throw;
  }
}

void read_picture(const std::string& path, Radiograph& into) {
  gdcm::ImageReader reader;
  read_whole_picture(path, reader);
  const gdcm::Image& image = reader.GetImage();
  const gdcm::DataSet& set = reader.GetFile().GetDataSet();
  if (is_too_short(image, set))
    fail(path, "its pixels are cut off", "fetch it again");
  into.width = static_cast<int>(image.GetDimension(0));
  into.height = static_cast<int>(image.GetDimension(1));
  into.patient = whole_text_of(set, 0x0010, 0x0020);
  into.study = text_of(set, 0x0020, 0x000d);
  into.instance = text_of(set, 0x0008, 0x0018);
  into.view = text_of(set, 0x0018, 0x5101);
  into.sex = text_of(set, 0x0010, 0x0040);
  into.age = text_of(set, 0x0010, 0x1010);

  const size_t count =
      static_cast<size_t>(into.width) * static_cast<size_t>(into.height);
  std::vector<double> values = stored_values(image, set, path, count);
  const gdcm::PixelFormat format = image.GetPixelFormat();
  const StoredAs stored{format.GetPixelRepresentation() != 0,
                        format.GetBitsStored()};
  try {
    into.rule = to_display(set, stored, values);
  } catch (const UnusableTable&) {
    fail(path, "has a lookup table that is cut off", "fetch it again");
  }
  // A slope of 1e308 is a number, what it makes of a pixel is not.
  if (!std::ranges::all_of(values, [](double x) { return std::isfinite(x); }))
    fail(path, "its rescaling leads beyond all numbers", "fetch it again");
  into.pixels.resize(count);
  for (size_t i = 0; i < count; ++i)
    into.pixels[i] = static_cast<uint8_t>(std::lround(255 * values[i]));
}

}  // namespace

SkipWords skip_words(Skip skip) {
  static constexpr std::array<SkipWords, 8> kWords = {{
      {"none", ""},
      {"lateral", "is a lateral view"},
      {"multi_frame", "has several frames"},
      {"burned_in_annotation", "has text burned into its pixels"},
      {"not_gray", "is not gray"},
      {"not_dicom", "is no DICOM file"},
      {"not_xray", "says that it is no X-ray"},
      {"other_body_part", "is not of the chest alone"},
  }};
  return kWords[static_cast<size_t>(skip)];
}

Skip read_radiograph(const std::string& path, const RadiographLimits& limits,
                     Radiograph& into) {
  assert(limits.max_pixels > 0);
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  const int64_t file_bytes = none ? 0 : static_cast<int64_t>(size);
  const int64_t bytes = kOtherBytes + kCopiesOfFile * file_bytes;
  const Head head =
      within(bytes, path, file_bytes, [&] { return read_head(path, limits); });
  into.note = head.note;
  if (head.skip != Skip::kNone) return head.skip;
  const int64_t decoder = head.compressed ? kDecoderBytes : 0;
  within(bytes + decoder + kBytesOfPixel * head.pixels, path, file_bytes, [&] {
    read_picture(path, into);
    return true;
  });
  return Skip::kNone;
}

}  // namespace chexnet
