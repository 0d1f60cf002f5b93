// The tensors of a file that anybody wrote, by torchvision's names
// (weight_names.hpp). A first convolution of one channel is taken for
// TorchXRayVision's and turned into ours (gray_stem.hpp).
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "chexnet/core/safetensors.hpp"
#include "chexnet/model/formats/gray_stem.hpp"

namespace chexnet {

class ForeignWeights {
 public:
  // `file` must outlive it. CheckpointError naming `origin`: two tensors would
  // have one name, or a convolution of one channel is not in fp32.
  ForeignWeights(const SafetensorsFile& file, std::string origin,
                 const InputScale& scale);
  ForeignWeights(const ForeignWeights&) = delete;  // arrays view its memory
  ForeignWeights& operator=(const ForeignWeights&) = delete;

  // In the file's order, with torchvision's names.
  const std::vector<NamedArray>& arrays() const { return arrays_; }
  const NamedArray* find(const std::string& name) const;  // null when absent
  // The file's name for torchvision's `name`.
  const std::string& name_in_file(const std::string& name) const;
  bool has_gray_stem() const { return !stem_.weight.values.empty(); }

  // One line: what was read under another name; empty where nothing was.
  std::string text() const;

 private:
  void turn_gray_stem(const InputScale& scale);
  NamedArray* find_own(const std::string& name);

  std::string origin_;
  std::vector<NamedArray> arrays_;
  std::vector<std::string> names_in_file_;  // [array]
  std::map<std::string, size_t> index_;     // torchvision's name -> array
  StemWeights stem_;                        // ours, where the file's was gray
};

}  // namespace chexnet
