// From stored values to gray as a viewer shows it (DICOM PS3.4 annex N):
//
//   stored -> modality LUT, or slope and intercept   physical units
//          -> VOI LUT, or window                     0 .. 1
//          -> presentation                           0 .. 1, bright = dense
#pragma once

#include <gdcmDataSet.h>

#include <string>
#include <vector>

namespace chexnet {

struct StoredAs {
  bool is_signed = false;
  int bits = 16;
};

// A lookup table that is there and shorter than it says.
struct UnusableTable {};

// Turns `values` into 0..1 in place and returns the rule it went by, for the
// record. Throws UnusableTable.
std::string to_display(const gdcm::DataSet& set, const StoredAs& stored,
                       std::vector<double>& values);

}  // namespace chexnet
