// Images without a table, as a data set that a network can score: its findings,
// and not one label.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/temporary_folder.hpp"
#include "chexnet/data/input_images.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "chexnet/train/run/dicom_inputs.hpp"

namespace chexnet {

struct InputSet {
  // Of converted DICOM files; on rank 0, null elsewhere and where there are
  // none.
  std::unique_ptr<TemporaryFolder> converted;
  Dataset dataset;  // of the images that were found
  Split split;      // all of them
  // Every image that the user named, in the order of naming: those without a
  // problem are the rows of the data set, one after the other. Rank 0.
  std::vector<InputImage> images;
  std::vector<InputPlace> places;  // that were named, by lists, too; rank 0
  size_t left_out = 0;             // files of other kinds; rank 0
};

// Collective. Rank 0 reads lists and stdin, searches, and converts DICOM; the
// others take the locations from it. `named` as input_places(). ConfigError:
// DICOM on ranks of several hosts. Else as find_input_images(),
// convert_dicom().
InputSet load_inputs(const Config& config,
                     const std::vector<std::string>& named,
                     const std::vector<std::string>& findings, TakenDicom taken,
                     Communicator& comm);

}  // namespace chexnet
