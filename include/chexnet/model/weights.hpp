// Network weights as safetensors with torchvision's names, to and from
// Parameters; from files with others' names too
// (model/formats/weight_names.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chexnet/core/safetensors.hpp"
#include "chexnet/model/formats/foreign_weights.hpp"
#include "chexnet/model/parameters.hpp"

namespace chexnet {

struct LoadReport {
  // Of the network, not in the file: kept as they were.
  std::vector<std::string> missing;
  std::vector<std::string> extra;  // of the file, not of the network: ignored
  // Findings of the classifier: rows taken over by name, rows kept as they
  // were, rows of the file that the network has no use for.
  std::vector<std::string> taken, afresh, left_out;
  // Outputs of a classifier whose file does not name its findings.
  int64_t unnamed = 0;
  std::string read_as;             // one line: what had other names; else empty
  std::string taken_text() const;  // one line; empty when no row was taken
  std::string left_out_text() const;  // one line; empty when everything fitted
};

// The findings that a file's classifier knows, in order of its rows, as its
// metadata "chexnet" says; empty when it does not say.
std::vector<std::string> findings_of(const SafetensorsFile& file,
                                     const std::string& origin);

struct LoadOptions {
  InputScale scale = {};  // of the network's input, for files of another one
  // What the file's outputs are, in their order; empty: as findings_of() it.
  std::vector<std::string> outputs = {};
};
// Copies tensors by name, rows of the classifier by name of finding
// (findings.hpp): never by position, as two data sets may have equally many.
// CheckpointError: a backbone tensor is missing or of another shape, or a value
// is not finite.
LoadReport load_weights(const SafetensorsFile& file, const std::string& origin,
                        const std::vector<std::string>& findings,
                        Parameters& parameters,
                        const LoadOptions& options = {});

// Writes parameters, running statistics and num_batches_tracked (= steps), all
// in fp32 (fp64 networks: fp64).
void save_weights(const std::filesystem::path& path,
                  const Parameters& parameters, int64_t steps,
                  const Metadata& metadata);

}  // namespace chexnet
