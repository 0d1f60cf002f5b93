#include "chest.hpp"

#include <algorithm>
#include <array>

#include "attributes.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

// Values are the file's: as long as DICOM allows for a code (VR CS) or a name.
std::string says(const char* attribute, std::string value) {
  constexpr size_t kLongestValue = 64;
  constexpr unsigned char kBeyondAscii = 0x80;  // of any character set
  std::ranges::replace_if(
      value,
      [](char c) { return static_cast<unsigned char>(c) >= kBeyondAscii; },
      '?');
  return std::string(attribute) + " is " +
         printable(value.substr(0, kLongestValue));
}

bool has_part(const std::string& text,
              std::initializer_list<const char*> parts) {
  return std::ranges::any_of(parts, [&](const char* part) {
    return text.find(part) != std::string::npos;
  });
}

// "CHEST", "PORT CHEST", "Thorax", "TORAX"; not the spine, nor a child's chest
// and abdomen in one picture.
bool names_chest(const std::string& body_part) {
  const std::string text = lowered(body_part);
  return has_part(text, {"chest", "thorax", "torax", "torace", "lung"}) &&
         !has_part(text, {"spine", "abd"});
}

// Of the first item of AnatomicRegionSequence: thorax, thoracic cavity and
// lung in SNOMED CT and in the older SRT.
bool has_chest_code(const gdcm::DataSet& item) {
  constexpr std::array kCodes = {"51185008", "816094009", "43799004",
                                 "39607008", "T-D3000",   "T-28000"};
  return std::ranges::find(kCodes, text_of(item, 0x0008, 0x0100)) !=
             kCodes.end() ||
         names_chest(text_of(item, 0x0008, 0x0104));
}

std::string other_body_part(const gdcm::DataSet& set) {
  const std::string name = text_of(set, 0x0018, 0x0015);
  if (!name.empty())
    return names_chest(name) ? "" : says("BodyPartExamined", name);
  const auto items = items_of(set, {0x0008, 0x2218});
  if (!items) return "";
  const gdcm::DataSet& item = items->GetItem(1).GetNestedDataSet();
  const std::string code = text_of(item, 0x0008, 0x0100),
                    meaning = text_of(item, 0x0008, 0x0104);
  if ((code.empty() && meaning.empty()) || has_chest_code(item)) return "";
  return says("AnatomicRegionSequence", meaning.empty() ? code : meaning);
}

}  // namespace

// Films that were scanned and pictures of other programs are secondary captures
// of Modality OT, or SC in old files. Without a Modality, which is not valid
// DICOM, the class of the file says what it is.
WhatIsShown what_is_shown(const gdcm::DataSet& set) {
  WhatIsShown shown;
  const std::string modality = text_of(set, 0x0008, 0x0060),
                    sop_class = text_of(set, 0x0008, 0x0016);
  const bool is_capture = sop_class.starts_with("1.2.840.10008.5.1.4.1.1.7");
  const bool is_x_ray = modality == "CR" || modality == "DX";
  const bool may_be =
      is_x_ray || modality == "SC" || (modality == "OT" && is_capture);
  // Computed and digital radiography (PS3.4 section B.5).
  const bool has_x_ray_class =
      sop_class.empty() || is_capture ||
      sop_class == "1.2.840.10008.5.1.4.1.1.1" ||
      sop_class.starts_with("1.2.840.10008.5.1.4.1.1.1.1");
  if (modality.empty()) {
    if (!has_x_ray_class) shown.other_modality = says("SOPClassUID", sop_class);
    shown.note = "no Modality";
  } else if (!may_be) {
    shown.other_modality = says("Modality", modality);
  } else if (is_capture || !is_x_ray) {
    shown.note = "secondary capture";
  }
  shown.other_body_part = other_body_part(set);
  return shown;
}

}  // namespace chexnet
