// Images that a user names for scoring: image files, folders, archives, packs,
// s3:// paths and lists of these, as images in the order of naming, without a
// table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chexnet/config/config.hpp"
#include "chexnet/data/image_index.hpp"

namespace chexnet {

struct InputPlace {
  std::string path;
  bool listed = false;  // by a list: where it is absent, the others are scored
};

// `named`: paths; "@FILE" is a list, one path per line, and "-" or "@-" the
// list on stdin. AbsentError: no such list.
std::vector<InputPlace> input_places(const std::vector<std::string>& named,
                                     const S3Config& s3 = {});

struct InputImage {
  // The file's path as it was named or below the folder that was named; of a
  // part of a container CONTAINER/NAME. No two are equal: a further part of one
  // name gets "#<number>".
  std::string name;
  std::string problem;  // why there is nothing to score; empty: it was found
  // Of one that was converted from DICOM: the file, which instance it was, and
  // what is odd about it (tools/dicom/chest.hpp).
  std::string dicom_file = {}, dicom_instance = {}, dicom_note = {};
};

struct InputImages {
  std::vector<InputImage> images;  // in the order of naming, folders sorted
  // Those without a problem, in the same order.
  std::vector<FoundImage> found;
  std::vector<Container> containers;
  size_t absent = 0;  // images whose problem is that nothing is there
  // Files in folders and archives that by their name are no images: tables,
  // text.
  size_t left_out = 0;
};

// Each image once, however often it is named. A damaged archive, shard or pack
// is a row with its problem, after the rows of what precedes the damage.
// AbsentError: a path that no list names does not exist, or no image is found
// at all.
InputImages find_input_images(
    const std::vector<InputPlace>& places, Stores& stores,
    const Tick& tick = [] {});

}  // namespace chexnet
