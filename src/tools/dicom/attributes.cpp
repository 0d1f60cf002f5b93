// DICOM pads texts to even lengths with blanks or NULs and joins several values
// by backslashes.
#include "attributes.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace chexnet {
namespace {

std::string trimmed(std::string text) {
  const auto useless = [](char c) { return c == ' ' || c == '\0'; };
  while (!text.empty() && useless(text.back())) text.pop_back();
  while (!text.empty() && useless(text.front())) text.erase(0, 1);
  return text;
}

}  // namespace

const gdcm::ByteValue* bytes_of(const gdcm::DataSet& set,
                                const gdcm::Tag& tag) {
  return set.FindDataElement(tag) ? set.GetDataElement(tag).GetByteValue()
                                  : nullptr;
}

gdcm::SmartPointer<gdcm::SequenceOfItems> items_of(const gdcm::DataSet& set,
                                                   const gdcm::Tag& tag) {
  if (!set.FindDataElement(tag)) return nullptr;
  auto items = set.GetDataElement(tag).GetValueAsSQ();
  if (items && items->GetNumberOfItems() < 1) return nullptr;
  return items;
}

std::string text_of(const gdcm::DataSet& set, uint16_t group,
                    uint16_t element) {
  const std::string text = whole_text_of(set, group, element);
  return trimmed(text.substr(0, text.find('\\')));
}

std::string whole_text_of(const gdcm::DataSet& set, uint16_t group,
                          uint16_t element) {
  const gdcm::ByteValue* bytes = bytes_of(set, {group, element});
  if (bytes == nullptr) return {};
  return trimmed(std::string(bytes->GetPointer(), bytes->GetLength()));
}

bool number_of(const std::string& text, double& into) {
  char* end = nullptr;
  const double parsed = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() ||
      !std::isfinite(parsed))
    return false;
  into = parsed;
  return true;
}

uint16_t short_of(const gdcm::DataSet& set, uint16_t group, uint16_t element) {
  const gdcm::ByteValue* bytes = bytes_of(set, {group, element});
  if (bytes == nullptr || bytes->GetLength() < 2) return 0;
  uint16_t value = 0;
  std::memcpy(&value, bytes->GetPointer(), sizeof value);
  return value;
}

}  // namespace chexnet
