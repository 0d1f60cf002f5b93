// Converts DICOM files into a set: OUT/images/*.png, OUT/images.csv,
// OUT/conversion.json, and the private map of pseudonyms outside of it.
// images.csv is written last: with it the set is whole. Where no picture could
// be converted, there is neither set nor map; a key that was made stays.
#pragma once

#include <string>
#include <vector>

#include "worker.hpp"

namespace chexnet {

struct ConversionOptions {
  std::vector<std::string> in;  // files and folders
  std::string out, ids = "pseudonym", key_file, map_file;
  // A CSV of every file that was read (file,image,problem,instance,note), for
  // programs; it names files, so it stays out of the set and only its user may
  // read it.
  std::string outcomes_file;
  WorkerLimits limits;
  bool json = false;  // one JSON object on stdout at the end

  bool hides_ids() const { return ids == "pseudonym"; }
};

// The program's exit code: 0, or that of data when no image was converted.
// CheckpointError: OUT or the private files cannot be written. One file that is
// damaged is counted, and no error.
int convert(const ConversionOptions& options);

}  // namespace chexnet
