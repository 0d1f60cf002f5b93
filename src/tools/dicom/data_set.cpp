#include "data_set.hpp"

#include <gdcmFile.h>
#include <gdcmReader.h>
#include <gdcmSequenceOfItems.h>
#include <gdcmWriter.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <ctime>
#include <sstream>

#include "attributes.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

gdcm::DataElement element_of(uint16_t group, uint16_t element, gdcm::VR kind,
                             const std::string& bytes) {
  gdcm::DataElement e(gdcm::Tag(group, element));
  e.SetVR(kind);
  e.SetByteValue(bytes.data(), static_cast<uint32_t>(bytes.size()));
  return e;
}

struct Shared {
  uint16_t group, element;
  gdcm::VR::VRType kind;
  bool required;  // an empty value where the source has none (type 2)
};
// Of the modules Patient, General Study and Patient Study (PS3.3 C.7), and the
// character set that their texts are in.
constexpr std::array kShared = {
    Shared{0x0008, 0x0005, gdcm::VR::CS, false},
    Shared{0x0008, 0x0020, gdcm::VR::DA, true},   // study's date
    Shared{0x0008, 0x0030, gdcm::VR::TM, true},   // and time
    Shared{0x0008, 0x0050, gdcm::VR::SH, true},   // accession number
    Shared{0x0008, 0x0090, gdcm::VR::PN, true},   // referring physician
    Shared{0x0008, 0x1030, gdcm::VR::LO, false},  // study's description
    Shared{0x0010, 0x0010, gdcm::VR::PN, true},   // patient
    Shared{0x0010, 0x0020, gdcm::VR::LO, true},
    Shared{0x0010, 0x0021, gdcm::VR::LO, false},
    Shared{0x0010, 0x0030, gdcm::VR::DA, true},
    Shared{0x0010, 0x0040, gdcm::VR::CS, true},
    Shared{0x0010, 0x1010, gdcm::VR::AS, false},
    Shared{0x0020, 0x000d, gdcm::VR::UI, true},
    Shared{0x0020, 0x0010, gdcm::VR::SH, true},
};

// An age is four characters, 062Y; "62" is not passed on.
bool is_wrong(const Shared& attribute, const gdcm::DataSet& set) {
  return attribute.kind == gdcm::VR::AS &&
         text_of(set, attribute.group, attribute.element).size() != 4;
}

}  // namespace

void put_text(gdcm::DataSet& set, uint16_t group, uint16_t element,
              gdcm::VR kind, const std::string& text) {
  std::string padded = text;
  if (padded.size() % 2 != 0) padded += kind == gdcm::VR::UI ? '\0' : ' ';
  set.Replace(element_of(group, element, kind, padded));
}

void put_short(gdcm::DataSet& set, uint16_t group, uint16_t element,
               uint16_t value) {
  set.Replace(
      element_of(group, element, gdcm::VR::US,
                 {reinterpret_cast<const char*>(&value), sizeof value}));
}

void put_bytes(gdcm::DataSet& set, uint16_t group, uint16_t element,
               gdcm::VR kind, std::span<const std::byte> bytes) {
  std::string padded(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (padded.size() % 2 != 0) padded += '\0';
  set.Replace(element_of(group, element, kind, padded));
}

void put_items(gdcm::DataSet& set, uint16_t group, uint16_t element,
               const std::vector<gdcm::DataSet>& items) {
  auto sequence = gdcm::SequenceOfItems::New();
  sequence->SetLengthToUndefined();
  for (const auto& nested : items) {
    gdcm::Item item;
    item.SetVLToUndefined();
    item.SetNestedDataSet(nested);
    sequence->AddItem(item);
  }
  gdcm::DataElement e(gdcm::Tag(group, element));
  e.SetVR(gdcm::VR::SQ);
  e.SetValue(*sequence);
  e.SetVLToUndefined();
  set.Replace(e);
}

void put_concept(gdcm::DataSet& set, uint16_t group, uint16_t element,
                 const Concept& concept_of) {
  assert(concept_of.code.size() <= 16);
  gdcm::DataSet item;
  put_text(item, 0x0008, 0x0100, gdcm::VR::SH, concept_of.code);
  put_text(item, 0x0008, 0x0102, gdcm::VR::SH, concept_of.scheme);
  put_text(item, 0x0008, 0x0104, gdcm::VR::LO, concept_of.meaning);
  put_items(set, group, element, {item});
}

Moment moment_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 16> date{}, time{};
  std::strftime(date.data(), date.size(), "%Y%m%d", &parts);
  std::strftime(time.data(), time.size(), "%H%M%S", &parts);
  return {date.data(), time.data()};
}

std::string uid_of(const std::string& text) {
  std::string decimal = "0";  // of 128 bits, the last digit first
  for (const char byte : bytes_of_hex(sha256_hex(text).substr(0, 32))) {
    int carry = static_cast<unsigned char>(byte);
    for (char& d : decimal) {
      carry += (d - '0') * 256;
      d = static_cast<char>('0' + carry % 10);
      carry /= 10;
    }
    for (; carry > 0; carry /= 10)
      decimal += static_cast<char>('0' + carry % 10);
  }
  std::ranges::reverse(decimal);
  return "2.25." + decimal;
}

// A backslash parts values, and a control character may end a text.
std::string Source::shown(const std::string& text, size_t most) const {
  std::string out;
  size_t characters = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool goes_on = (byte & 0xc0) == 0x80;  // a character of UTF-8
    if (!goes_on && ++characters > most) break;
    if (byte >= 0x80 && utf8)
      out += c;
    else if (byte >= 0x80)
      out += goes_on ? "" : "?";
    else if (c == '\\')
      out += '/';
    else
      out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return out;
}

namespace {

// PS3.5, 9.1: components of digits with dots between them, none with a leading
// 0, 64 characters at most.
bool is_uid(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  bool begins = true, is_zero = false;
  for (const char c : text) {
    if (c == '.') {
      if (begins) return false;
      begins = true;
      continue;
    }
    if (c < '0' || c > '9' || (!begins && is_zero)) return false;
    is_zero = begins && c == '0';
    begins = false;
  }
  return !begins;
}

}  // namespace

Source read_source(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw DataError(
        "[dicom] {}: is not there any more, or no file. Hint: keep the files "
        "until predict has ended",
        path);
  gdcm::Reader reader;
  reader.SetFileName(path.c_str());
  // Up to the pixels: GDCM cannot stop earlier in a deflated file.
  if (!reader.ReadUpToTag(gdcm::Tag(0x7fe0, 0x0000)))
    throw DataError("[dicom] {}: cannot be read as DICOM. Hint: is it damaged?",
                    path);
  const gdcm::DataSet& set = reader.GetFile().GetDataSet();
  Source source;
  source.utf8 = text_of(set, 0x0008, 0x0005) == "ISO_IR 192";
  source.sop_class = text_of(set, 0x0008, 0x0016);
  source.instance = text_of(set, 0x0008, 0x0018);
  source.study = text_of(set, 0x0020, 0x000d);
  source.series = text_of(set, 0x0020, 0x000e);
  for (const auto* uid :
       {&source.sop_class, &source.instance, &source.study, &source.series})
    if (!is_uid(*uid))
      throw DataError(
          "[dicom] {}: {}, so nothing can refer to it. Hint: fetch it again "
          "from the archive",
          path,
          uid->empty() ? "has no UIDs of study, series and instance"
                       : "'" + printable(*uid) + "' is no UID");
  for (const Shared& s : kShared) {
    const gdcm::ByteValue* bytes = bytes_of(set, {s.group, s.element});
    const bool there = bytes != nullptr && bytes->GetLength() > 0;
    if (there && !is_wrong(s, set)) {
      source.shared.Replace(
          element_of(s.group, s.element, s.kind,
                     std::string(bytes->GetPointer(), bytes->GetLength())));
    } else if (s.required) {
      put_text(source.shared, s.group, s.element, s.kind, "");
    }
  }
  return source;
}

std::string file_of(const gdcm::DataSet& set) {
  gdcm::Writer writer;
  writer.GetFile().SetDataSet(set);
  writer.GetFile().GetHeader().SetDataSetTransferSyntax(
      gdcm::TransferSyntax::ExplicitVRLittleEndian);
  std::ostringstream bytes;
  writer.SetStream(bytes);
  if (!writer.Write())
    throw CheckpointError(
        "[dicom] a file of results cannot be formed. Hint: please report it");
  return bytes.str();
}

}  // namespace chexnet
