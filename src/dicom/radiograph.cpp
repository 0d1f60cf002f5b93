#include "radiograph.hpp"

#include <gdcmImageReader.h>
#include <gdcmSequenceOfItems.h>
#include <gdcmTrace.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, const char* hint) {
  throw DataError("[dicom] " + path + ": " + what + ". Hint: " + hint);
}

std::string trimmed(std::string text) {
  const auto useless = [](char c) { return c == ' ' || c == '\0'; };
  while (!text.empty() && useless(text.back())) text.pop_back();
  while (!text.empty() && useless(text.front())) text.erase(0, 1);
  return text;
}

// The first of a text attribute's values; empty when absent.
std::string value(const gdcm::DataSet& set, std::uint16_t group, std::uint16_t element) {
  const gdcm::Tag tag(group, element);
  if (!set.FindDataElement(tag)) return {};
  const gdcm::ByteValue* bytes = set.GetDataElement(tag).GetByteValue();
  if (bytes == nullptr) return {};
  std::string text(bytes->GetPointer(), bytes->GetLength());
  return trimmed(text.substr(0, text.find('\\')));
}

// False, and `into` as it was, when the text is no number.
bool number(const std::string& text, double& into) {
  char* end = nullptr;
  const double parsed = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(parsed)) return false;
  into = parsed;
  return true;
}

bool has_magic(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "cannot be read", "check its permissions");
  char head[132] = {};
  in.read(head, sizeof head);
  return in.gcount() == sizeof head && std::memcmp(head + 128, "DICM", 4) == 0;
}

// A lookup table of DICOM PS3.3 C.11.1 and C.11.2: entries for inputs from `first` on.
struct Lut {
  double first = 0;
  std::vector<double> entries;
  double at(double x) const {
    const double i =
        std::clamp(std::round(x - first), 0.0, static_cast<double>(entries.size() - 1));
    return entries[static_cast<std::size_t>(i)];
  }
};

bool read_lut(const gdcm::DataSet& set, std::uint16_t element, bool is_signed, Lut& lut) {
  const gdcm::Tag tag(0x0028, element);
  if (!set.FindDataElement(tag)) return false;
  const auto items = set.GetDataElement(tag).GetValueAsSQ();
  if (!items || items->GetNumberOfItems() < 1) return false;
  const gdcm::DataSet& item = items->GetItem(1).GetNestedDataSet();
  const auto words = [&](std::uint16_t e) {
    std::vector<std::uint16_t> out;
    const gdcm::Tag t(0x0028, e);
    if (!item.FindDataElement(t)) return out;
    if (const gdcm::ByteValue* bytes = item.GetDataElement(t).GetByteValue()) {
      out.resize(bytes->GetLength() / 2);
      std::memcpy(out.data(), bytes->GetPointer(), out.size() * 2);
    }
    return out;
  };
  const auto descriptor = words(0x3002), data = words(0x3006);
  if (descriptor.size() < 3) return false;
  const std::size_t count = descriptor[0] == 0 ? 65536 : descriptor[0];
  if (data.size() < count) return false;
  lut.first = is_signed ? static_cast<std::int16_t>(descriptor[1]) : descriptor[1];
  lut.entries.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count));
  return true;
}

// Stored values as doubles.
std::vector<double> stored_values(const gdcm::Image& image, const std::string& path,
                                  std::size_t count) {
  std::vector<char> buffer(image.GetBufferLength());
  if (!image.GetBuffer(buffer.data())) fail(path, "its pixels cannot be decoded", "is it cut off?");
  const gdcm::PixelFormat format = image.GetPixelFormat();
  const int bits = format.GetBitsStored();
  const bool is_signed = format.GetPixelRepresentation() != 0;
  std::vector<double> values(count);
  const auto widen = [&](std::uint32_t raw) {
    if (bits < 32) raw &= (1u << bits) - 1;
    if (is_signed && bits < 32 && (raw >> (bits - 1) & 1) != 0) raw |= ~0u << bits;
    return is_signed ? static_cast<double>(static_cast<std::int32_t>(raw))
                     : static_cast<double>(raw);
  };
  const std::size_t bytes = format.GetBitsAllocated() / 8;
  if ((bytes != 1 && bytes != 2 && bytes != 4) || buffer.size() < count * bytes)
    fail(path, "has " + std::to_string(format.GetBitsAllocated()) + " bits a pixel",
         "8, 16 and 32 are read");
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t raw = 0;
    std::memcpy(&raw, &buffer[i * bytes], bytes);  // gdcm hands over host byte order
    values[i] = widen(raw);
  }
  return values;
}

bool lateral(const std::string& view) {
  return view == "LL" || view == "RL" || view == "LATERAL" || view == "LLO" || view == "RLO" ||
         view == "LAT";
}

}  // namespace

const char* skip_name(Skip skip) {
  switch (skip) {
    case Skip::kNone:
      return "none";
    case Skip::kLateral:
      return "lateral";
    case Skip::kMultiFrame:
      return "multi_frame";
    case Skip::kBurnedIn:
      return "burned_in_annotation";
    case Skip::kNotGray:
      return "not_gray";
    case Skip::kNotDicom:
      return "not_dicom";
  }
  return "";
}

Skip read_radiograph(const std::string& path, std::int64_t max_pixels, Radiograph& into) {
  // The attributes first, so that a size is refused before its pixels are taken into memory.
  {
    gdcm::Reader head;
    head.SetFileName(path.c_str());
    if (!head.ReadUpToTag(gdcm::Tag(0x7fe0, 0x0000))) {
      if (!has_magic(path)) return Skip::kNotDicom;
      fail(path, "is damaged", "fetch it again");
    }
    const gdcm::DataSet& set = head.GetFile().GetDataSet();
    const auto short_of = [&](std::uint16_t element) -> std::int64_t {
      const gdcm::Tag tag(0x0028, element);
      std::uint16_t n = 0;
      if (set.FindDataElement(tag))
        if (const auto* bytes = set.GetDataElement(tag).GetByteValue();
            bytes != nullptr && bytes->GetLength() >= 2)
          std::memcpy(&n, bytes->GetPointer(), 2);
      return n;
    };
    const std::int64_t rows = short_of(0x0010), columns = short_of(0x0011);
    if (rows < 1 || columns < 1) fail(path, "has no picture", "is it a report or a directory?");
    if (columns > max_pixels / rows)
      fail(path, "is " + std::to_string(columns) + " x " + std::to_string(rows) + " pixels",
           "raise --max-pixels if the file is to be trusted");
    double frames = 1;
    number(value(set, 0x0028, 0x0008), frames);
    if (frames > 1) return Skip::kMultiFrame;
    if (value(set, 0x0028, 0x0301) == "YES") return Skip::kBurnedIn;
    if (lateral(value(set, 0x0018, 0x5101))) return Skip::kLateral;
    if (!value(set, 0x0028, 0x0004).starts_with("MONOCHROME")) return Skip::kNotGray;
  }
  // GDCM fills up pixels that are cut off, and tells so in a warning only.
  std::ostringstream warnings;
  gdcm::Trace::SetWarningStream(warnings);
  gdcm::Trace::SetWarning(true);
  gdcm::ImageReader reader;
  reader.SetFileName(path.c_str());
  const bool whole = reader.Read();
  gdcm::Trace::SetWarning(false);
  gdcm::Trace::SetWarningStream(std::cerr);
  if (warnings.str().find("Incomplete Pixel Data") != std::string::npos)
    fail(path, "its pixels are cut off", "fetch it again");
  if (!whole) fail(path, "its picture cannot be read", "is it cut off?");
  const gdcm::Image& image = reader.GetImage();
  const gdcm::DataSet& set = reader.GetFile().GetDataSet();
  into.width = static_cast<int>(image.GetDimension(0));
  into.height = static_cast<int>(image.GetDimension(1));
  const std::size_t count =
      static_cast<std::size_t>(into.width) * static_cast<std::size_t>(into.height);
  std::vector<double> v = stored_values(image, path, count);
  into.patient = value(set, 0x0010, 0x0020);
  into.study = value(set, 0x0020, 0x000d);
  into.instance = value(set, 0x0008, 0x0018);
  into.view = value(set, 0x0018, 0x5101);
  into.sex = value(set, 0x0010, 0x0040);
  into.age = value(set, 0x0010, 0x1010);

  // Modality.
  const bool is_signed = image.GetPixelFormat().GetPixelRepresentation() != 0;
  Lut lut;
  std::string rule;
  if (read_lut(set, 0x3000, is_signed, lut)) {
    for (double& x : v) x = lut.at(x);
    rule = "modality LUT";
  } else {
    double slope = 1, intercept = 0;
    number(value(set, 0x0028, 0x1053), slope);
    number(value(set, 0x0028, 0x1052), intercept);
    if (slope != 1 || intercept != 0)
      for (double& x : v) x = slope * x + intercept;
    rule = "rescale " + fixed(slope, 6) + ", " + fixed(intercept, 6);
  }
  // Values of interest, to 0..1.
  double center = 0, width = 0;
  if (read_lut(set, 0x3010, is_signed, lut)) {
    const auto [low, high] = std::ranges::minmax(lut.entries);
    for (double& x : v) x = high > low ? (lut.at(x) - low) / (high - low) : 0;
    rule += "; VOI LUT of " + std::to_string(lut.entries.size()) + " entries";
  } else if (number(value(set, 0x0028, 0x1050), center) &&
             number(value(set, 0x0028, 0x1051), width) && width >= 1) {
    std::string function = value(set, 0x0028, 0x1056);
    if (function != "SIGMOID" && function != "LINEAR_EXACT") function = "LINEAR";
    for (double& x : v) {
      if (function == "SIGMOID")
        x = 1 / (1 + std::exp(-4 * (x - center) / width));
      else if (function == "LINEAR_EXACT")
        x = std::clamp((x - center) / width + 0.5, 0.0, 1.0);
      else  // PS3.3 C.11.2.1.2.1
        x = width > 1 ? std::clamp((x - (center - 0.5)) / (width - 1) + 0.5, 0.0, 1.0)
                      : (x <= center - 0.5 ? 0.0 : 1.0);
    }
    rule += "; window " + fixed(center, 3) + " / " + fixed(width, 3) + " " + function;
  } else if (image.GetPixelFormat().GetBitsStored() <= 8) {
    for (double& x : v) x = std::clamp(x / 255, 0.0, 1.0);
    rule += "; 8 bits as they are";
  } else {
    const auto [low, high] = std::ranges::minmax(v);
    for (double& x : v) x = high > low ? (x - low) / (high - low) : 0;
    rule += "; smallest to largest value (" + fixed(low, 3) + " to " + fixed(high, 3) + ")";
  }
  // Presentation. An explicit shape says all; else MONOCHROME1 means that high values are dark.
  const std::string shape = value(set, 0x2050, 0x0020);
  const bool monochrome1 = value(set, 0x0028, 0x0004) == "MONOCHROME1";
  const bool invert = shape == "INVERSE" || (shape.empty() && monochrome1);
  if (invert) rule += "; inverted (" + (shape.empty() ? "MONOCHROME1" : shape) + ")";
  into.rule = rule + "; round(255 x)";
  into.pixels.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    into.pixels[i] = static_cast<std::uint8_t>(std::lround(255 * (invert ? 1 - v[i] : v[i])));
  return Skip::kNone;
}

}  // namespace chexnet
