// Drawings and a network's outputs for them: with these, whoever uses the
// network elsewhere can tell that it is the same, and no patient's picture
// travels.
#pragma once

#include <filesystem>
#include <vector>

#include "chexnet/model/formats/export_folder.hpp"
#include "chexnet/model/formats/export_texts.hpp"
#include "chexnet/train/network_state.hpp"

namespace chexnet {

// Draws `count` phantoms, writes picture and input of each into vectors/ of
// `folder`, and computes them as `predict` does, in fp32 on this process's
// CPUs. `file` is the model. Errors of read_network().
std::vector<TestVector> make_test_vectors(const std::filesystem::path& file,
                                          const ModelMetadata& metadata,
                                          int count,
                                          const ExportFolder& folder);

}  // namespace chexnet
