// Looks at every image and every row of a data set before it is used for
// training.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "chexnet/data/image_source.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/split.hpp"

namespace chexnet {

struct Audit {
  struct Group {
    size_t images = 0;
    std::vector<size_t> positives;  // [K]
  };
  struct SplitCounts {
    std::string name;
    size_t images = 0, patients = 0, no_finding = 0, unlabeled_entries = 0;
    // False: "No Finding" is a column of the table, counted as such.
    bool has_no_finding = true;
    std::vector<size_t> positives;  // [K]
    std::vector<size_t> uncertain;  // [K] entries of -1 in the tables
    // "sex F", "view AP", "age 40-59" …
    std::map<std::string, Group> subgroups;
  };
  std::vector<SplitCounts> splits;
  std::vector<std::string> missing;  // in the table, not on the disk
  // On the disk, not in the table, nor a table or list that the config names.
  std::vector<std::string> unlisted;
  std::vector<std::string> corrupt;     // messages
  std::map<std::string, size_t> sizes;  // "1024 x 1024" -> images
  std::vector<std::string> odd_sized;   // not of the usual size
  std::vector<std::string> flat;        // all pixels equal
  // Names of images with the same pixels.
  std::vector<std::vector<std::string>> duplicates;
  // Names of images that are nearly the same, re-encoded or resized, by
  // near_duplicates.hpp.
  std::vector<std::vector<std::string>> near_duplicates;
  // Patients or pictures in two splits, one sentence each.
  std::vector<std::string> leaks;
  // Comparison with the published numbers of NIH's releases.
  std::vector<std::string> known;
  bool known_differs = false;

  // Nothing missing, damaged, leaking or unlike a published table. Pictures
  // that stand twice in one split are counted only.
  bool clean() const {
    return missing.empty() && corrupt.empty() && leaks.empty() &&
           !known_differs;
  }
};

// Audit::known alone: which published table this is, of NIH's also whether the
// lists are the official ones. Reads no image.
std::vector<std::string> compared_with_published(const ManifestConfig& tables,
                                                 const Manifest& manifest,
                                                 const Splits& splits);

// `splits` may share patients. Images that are missing are counted, not
// refused. `threads` decode; `progress` gets the number of images done and of
// all.
Audit audit(const DataConfig& config, const Manifest& manifest,
            const Splits& splits, Stores& stores, int threads,
            const std::function<void(size_t done, size_t all)>& progress);

}  // namespace chexnet
