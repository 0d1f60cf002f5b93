// The options of predict, and the checks of them before any work.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chexnet/config/load.hpp"
#include "chexnet/train/model_metadata.hpp"
#include "dicom_results.hpp"
#include "heat_map_options.hpp"
#include "image_scores.hpp"
#include "predict_folders.hpp"

namespace chexnet {

inline constexpr const char* kProbabilitiesHead = "image,prob:";  // of our CSV

struct PredictOptions {
  std::string model, out;
  std::string dicom;  // folder of DICOM results; empty: none are wanted
  std::vector<std::string> inputs, set;
  int ranks = 0;
  bool json = false;
  bool features = false;
  bool any_dicom = false;  // also what is no chest X-ray
  std::string rule = "youden", calibration = "temperature";
  HeatMapOptions heat_maps;

  bool reads_stdin() const;
  // The first list that is "<(command)" of a shell; else "".
  std::string own_descriptor() const;
  PredictFolders folders() const;
};
void add_predict_options(CLI::App& command, PredictOptions& options);

// The config of the model in `file` with the overrides. ConfigError: one of
// them changes the network's input or findings.
Config predict_config(const std::filesystem::path& file,
                      const ModelMetadata& metadata,
                      const PredictOptions& options, Strings& variables);

// ConfigError: the model has not one network's features of an image.
void check_features(const ModelMetadata& metadata, const Config& config);

// Empty without the model's own rules: there is no yes and no.
std::optional<Decisions> decisions_of(const ModelMetadata& metadata,
                                      const Config& config,
                                      const PredictOptions& options);

// Before the work: outputs can be written, and none is an input.
void check_output_places(const PredictOptions& options,
                         const std::filesystem::path& model,
                         const ModelMetadata& metadata);

}  // namespace chexnet
