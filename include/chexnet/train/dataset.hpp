// The data of a run, equal on every rank: manifest, splits, and where each image lies.
#pragma once

#include <memory>

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
};

// Rank 0 reads, checks and scans first, so a fault is reported once; then the others read the same
// files. May take any time; HangError when a rank makes no progress for `timeout_s`
// (launch.timeout_s).
Dataset load_dataset(const DataConfig& config, Communicator& comm, double timeout_s);

// The rows training walks: the training split, or exactly those of train.order_file.
std::vector<std::uint32_t> training_rows(const Config& config, const Dataset& dataset);

}  // namespace chexnet
