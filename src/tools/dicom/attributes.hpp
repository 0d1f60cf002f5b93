// Attributes of a DICOM data set by their tags (PS3.6), as plain values.
#pragma once

#include <gdcmDataSet.h>
#include <gdcmSequenceOfItems.h>

#include <cstdint>
#include <string>

namespace chexnet {

// An attribute's bytes, in `set`; null when it is absent, empty or a sequence.
const gdcm::ByteValue* bytes_of(const gdcm::DataSet& set, const gdcm::Tag& tag);
// A sequence of one item or more; else null.
gdcm::SmartPointer<gdcm::SequenceOfItems> items_of(const gdcm::DataSet& set,
                                                   const gdcm::Tag& tag);
// The first of a text attribute's values, without padding; empty when absent.
std::string text_of(const gdcm::DataSet& set, uint16_t group, uint16_t element);
// Of an attribute that has one value, such as a patient's id: in some character
// sets a backslash's byte is also part of a character.
std::string whole_text_of(const gdcm::DataSet& set, uint16_t group,
                          uint16_t element);
// A US attribute; 0 when absent or too short.
uint16_t short_of(const gdcm::DataSet& set, uint16_t group, uint16_t element);
// False, and `into` as it was, when the text is no number.
bool number_of(const std::string& text, double& into);

}  // namespace chexnet
