// The data of a run, equal on every rank: manifest, splits, and where each
// image is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/data/image_source.hpp"
#include "chexnet/data/manifest.hpp"
#include "chexnet/data/split.hpp"

namespace chexnet {

struct Dataset {
  Manifest manifest;
  Splits splits;
  std::unique_ptr<Stores> stores;
  std::unique_ptr<ImageSource> images;
  // Split -> images that were left out of it: data.missing=skip.
  std::map<std::string, size_t> missing{};
  size_t missing_of(const std::string& split) const;
  // Validation and test images that are in another split, too, under another
  // name (shared_pictures.hpp); of rank 0, for training.
  size_t pictures_in_two_splits = 0;
};

// All of a config's splits. Rank 0 reads, checks and scans first, so a fault is
// reported once; then the others read the same files. DataError where these
// differ from host to host; AbsentError when an image is missing, or with
// data.missing=skip all of a split. May take any time; HangError when a rank
// makes no progress for launch.timeout_s. Meanwhile the main thread of each
// rank calls `stop`; WorkStopped on all ranks once one of them says yes.
Dataset load_dataset(const Config& config, Communicator& comm,
                     const std::function<bool()>& stop = {});

// The data that a network with `findings` scores: its labels by name of
// finding.
struct TestSet {
  Dataset dataset;
  Split split;  // what is scored: of the config's, or all of the tables
  // Findings; of eval.findings, where that is set.
  std::vector<std::string> scored;
  std::vector<std::string> unknown;    // of the table, not of the network
  std::vector<std::string> unlabeled;  // wanted, but no column of the table
};
// One split of the config's data; only its images must be there. ConfigError:
// no such split.
TestSet load_split(const Config& config, const std::string& split,
                   const std::vector<std::string>& findings, Communicator& comm,
                   const std::function<bool()>& stop = {});
// All rows of `tables`, which are read as data.manifest is; no lists. Columns
// of findings that the config names may be absent.
TestSet load_tables(const Config& config,
                    const std::vector<std::string>& tables,
                    const std::vector<std::string>& findings,
                    Communicator& comm, const std::function<bool()>& stop = {});

// DataError, on all ranks, where `sum`, of what each has read, differs from
// rank 0's: names the first such rank and its host. All ranks call; sums are
// equally long.
void check_equal_on_ranks(Communicator& comm, const std::string& what,
                          const std::string& sum);

// Logs how many images of each split were left out by data.missing=skip, if
// any. Loading does it on rank 0.
void warn_of_missing_images(const Dataset& dataset);

// Logs which findings cannot be learnt (training split) or scored (validation
// split), as one of two classes has no member there. ConfigError: eval.findings
// are not known.
void warn_of_one_sided_findings(const Config& config, const Dataset& dataset);

// The rows to train on: the training split, or exactly those of
// train.order_file.
std::vector<uint32_t> training_rows(const Config& config,
                                    const Dataset& dataset);

}  // namespace chexnet
