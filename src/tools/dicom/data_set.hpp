// Building DICOM data sets: attributes by tag, items of sequences, and files
// that appear whole.
#pragma once

#include <gdcmDataSet.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace chexnet {

// A coded concept (PS3.3 section 8): a code of at most 16 characters, a meaning
// of at most 64 (Source::shown).
struct Concept {
  std::string code, scheme, meaning;
};

// `kind` is the value representation, e.g. gdcm::VR::LO; texts are padded to
// even lengths.
void put_text(gdcm::DataSet& set, uint16_t group, uint16_t element,
              gdcm::VR kind, const std::string& text);
void put_short(gdcm::DataSet& set, uint16_t group, uint16_t element,
               uint16_t value);
void put_bytes(gdcm::DataSet& set, uint16_t group, uint16_t element,
               gdcm::VR kind, std::span<const std::byte> bytes);
void put_items(gdcm::DataSet& set, uint16_t group, uint16_t element,
               const std::vector<gdcm::DataSet>& items);
void put_concept(gdcm::DataSet& set, uint16_t group, uint16_t element,
                 const Concept& concept_of);

// "20261122", "231500"
struct Moment {
  std::string date, time;
};
Moment moment_now();

// A UID below 2.25 (PS3.5 annex B.2) that follows from the text.
std::string uid_of(const std::string& text);

// What a file made from another one shares with it: patient and study. Absent
// attributes that must be there become empty. DataError when `path` is no DICOM
// file of an instance.
struct Source {
  std::string sop_class, instance, series;
  std::string study;
  gdcm::DataSet shared;
  bool utf8 = false;  // texts are (ISO_IR 192); else ASCII alone may be added
  // `text` as this file can hold it in a value of at most `most` characters.
  std::string shown(const std::string& text, size_t most) const;
};
Source read_source(const std::string& path);

// The bytes of a file, explicit VR little endian. CheckpointError.
std::string file_of(const gdcm::DataSet& set);

}  // namespace chexnet
