// Every step keeps doubles; rounding to 8 bits happens once, by the caller.
#include "display.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "attributes.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

// A lookup table of DICOM PS3.3 C.11.1 and C.11.2: entries for inputs from
// `first` on.
struct Lut {
  double first = 0;
  std::vector<double> entries;
  int bits = 16;  // of an entry, as the table says
  double at(double x) const {
    const double i = std::clamp(std::round(x - first), 0.0,
                                static_cast<double>(entries.size() - 1));
    return entries[static_cast<size_t>(i)];
  }
};

std::vector<uint8_t> copy_of(const gdcm::DataSet& item, const gdcm::Tag& tag) {
  const gdcm::ByteValue* bytes = bytes_of(item, tag);
  if (bytes == nullptr) return {};
  const auto* first = reinterpret_cast<const uint8_t*>(bytes->GetPointer());
  return {first, first + bytes->GetLength()};
}

uint16_t word(const std::vector<uint8_t>& bytes, size_t i) {
  uint16_t value = 0;
  std::memcpy(&value, &bytes[2 * i], 2);
  return value;
}

// `may_be_negative`: what the table is for, where its VR does not say it.
bool read_lut(const gdcm::DataSet& set, uint16_t element, bool may_be_negative,
              Lut& lut) {
  const gdcm::Tag describing(0x0028, 0x3002);
  const auto items = items_of(set, {0x0028, element});
  if (!items) return false;
  const gdcm::DataSet& item = items->GetItem(1).GetNestedDataSet();
  const auto descriptor = copy_of(item, describing),
             data = copy_of(item, gdcm::Tag(0x0028, 0x3006));
  constexpr size_t kDescriptor = 3 * sizeof(uint16_t);
  if (descriptor.size() < kDescriptor) throw UnusableTable();
  const size_t count = word(descriptor, 0) == 0 ? 65536 : word(descriptor, 0);
  // Entries of up to 8 bits are a byte each, but in many files a word.
  const bool in_bytes = word(descriptor, 2) <= 8 && data.size() < 2 * count;
  if (data.size() < (in_bytes ? count : 2 * count)) throw UnusableTable();
  const gdcm::VR vr = item.GetDataElement(describing).GetVR();
  const bool is_signed =
      vr == gdcm::VR::SS || (vr != gdcm::VR::US && may_be_negative);
  const uint16_t first = word(descriptor, 1);
  lut.first = is_signed ? static_cast<int16_t>(first) : first;
  lut.bits = std::clamp<int>(word(descriptor, 2), 1, 16);
  lut.entries.resize(count);
  for (size_t i = 0; i < count; ++i)
    lut.entries[i] = in_bytes ? data[i] : word(data, i);
  return true;
}

// `as_stored`: whether the values are what they were.
std::string apply_modality(const gdcm::DataSet& set, bool is_signed,
                           std::vector<double>& values, bool& as_stored) {
  Lut lut;
  as_stored = false;
  if (read_lut(set, 0x3000, is_signed, lut)) {
    for (double& x : values) x = lut.at(x);
    return "modality LUT";
  }
  double slope = 1, intercept = 0;
  number_of(text_of(set, 0x0028, 0x1053), slope);
  number_of(text_of(set, 0x0028, 0x1052), intercept);
  as_stored = slope == 1 && intercept == 0;
  if (!as_stored)
    for (double& x : values) x = slope * x + intercept;
  return "rescale " + fixed(slope, 6) + ", " + fixed(intercept, 6);
}

struct Window {
  double center = 0, width = 0;
  std::string function;  // LINEAR, LINEAR_EXACT or SIGMOID
};

bool read_window(const gdcm::DataSet& set, Window& window) {
  if (!number_of(text_of(set, 0x0028, 0x1050), window.center)) return false;
  if (!number_of(text_of(set, 0x0028, 0x1051), window.width)) return false;
  window.function = text_of(set, 0x0028, 0x1056);
  if (window.function != "SIGMOID" && window.function != "LINEAR_EXACT")
    window.function = "LINEAR";
  return window.function == "LINEAR" ? window.width >= 1 : window.width > 0;
}

// PS3.3 C.11.2.1.2 and C.11.2.1.3.
double windowed(const Window& w, double x) {
  if (w.function == "SIGMOID")
    return 1 / (1 + std::exp(-4 * (x - w.center) / w.width));
  if (w.function == "LINEAR_EXACT")
    return std::clamp((x - w.center) / w.width + 0.5, 0.0, 1.0);
  if (w.width > 1)
    return std::clamp((x - (w.center - 0.5)) / (w.width - 1) + 0.5, 0.0, 1.0);
  return x <= w.center - 0.5 ? 0.0 : 1.0;
}

// [pixel]: whether its stored value says that it is no part of the picture
// (PS3.3 C.7.5.1.1.2). Empty when that is so of none or of all.
std::vector<bool> find_padding(const gdcm::DataSet& set, bool is_signed,
                               const std::vector<double>& stored) {
  const auto attribute = [&](uint16_t element) -> std::optional<double> {
    const auto bytes = copy_of(set, gdcm::Tag(0x0028, element));
    if (bytes.size() < sizeof(uint16_t)) return std::nullopt;
    const uint16_t value = word(bytes, 0);
    return is_signed ? static_cast<int16_t>(value) : value;
  };
  const auto one = attribute(0x0120);
  if (!one) return {};
  const auto [low, high] =
      std::minmax({*one, attribute(0x0121).value_or(*one)});
  std::vector<bool> found(stored.size());
  for (size_t i = 0; i < stored.size(); ++i)
    found[i] = low <= stored[i] && stored[i] <= high;
  const auto count = std::ranges::count(found, true);
  const auto all = static_cast<std::ptrdiff_t>(found.size());
  return count == 0 || count == all ? std::vector<bool>() : found;
}

// From the smallest to the largest value that is no padding, to 0..1.
std::string stretch(const std::vector<bool>& padding,
                    std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!padding.empty() && padding[i]) continue;
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  for (double& x : values)
    x = high > low ? std::clamp((x - low) / (high - low), 0.0, 1.0) : 0;
  return "; smallest to largest value (" + fixed(low, 3) + " to " +
         fixed(high, 3) + (padding.empty() ? ")" : ", without padding)");
}

// Values of interest, to 0..1.
std::string apply_values_of_interest(const gdcm::DataSet& set,
                                     const StoredAs& stored, bool as_stored,
                                     const std::vector<bool>& padding,
                                     std::vector<double>& values) {
  Lut lut;
  const bool negative =
      std::ranges::any_of(values, [](double x) { return x < 0; });
  if (read_lut(set, 0x3010, stored.is_signed || negative, lut)) {
    // From 0 to 2^bits - 1 (C.11.2.1.1), where entries keep to that.
    const double most = std::ranges::max(lut.entries);
    const double white = std::max(most, std::exp2(lut.bits) - 1);
    for (double& x : values) x = lut.at(x) / white;
    return "; VOI LUT of " + std::to_string(lut.entries.size()) +
           " entries, white is " + fixed(white, 0);
  }
  if (Window window; read_window(set, window)) {
    for (double& x : values) x = windowed(window, x);
    return "; window " + fixed(window.center, 3) + " / " +
           fixed(window.width, 3) + " " + window.function;
  }
  if (stored.bits == 8 && !stored.is_signed && as_stored) {
    for (double& x : values) x = std::clamp(x / 255, 0.0, 1.0);
    return "; 8 bits as they are";
  }
  return stretch(padding, values);
}

// An explicit shape says all; else MONOCHROME1 means that high values are dark.
std::string apply_presentation(const gdcm::DataSet& set,
                               std::vector<double>& values) {
  const std::string shape = text_of(set, 0x2050, 0x0020);
  const bool monochrome1 = text_of(set, 0x0028, 0x0004) == "MONOCHROME1";
  const bool invert = shape == "INVERSE" || (shape.empty() && monochrome1);
  if (!invert) return "";
  for (double& x : values) x = 1 - x;
  return "; inverted (" + (shape.empty() ? "MONOCHROME1" : shape) + ")";
}

}  // namespace

std::string to_display(const gdcm::DataSet& set, const StoredAs& stored,
                       std::vector<double>& values) {
  assert(!values.empty());
  bool as_stored = true;
  const auto padding = find_padding(set, stored.is_signed, values);
  std::string rule = apply_modality(set, stored.is_signed, values, as_stored);
  rule += apply_values_of_interest(set, stored, as_stored, padding, values);
  rule += apply_presentation(set, values);
  return rule + "; round(255 x)";
}

}  // namespace chexnet
