#include "chexnet/model/formats/named_weights.hpp"

#include "chexnet/model/formats/float_tensors.hpp"
#include "chexnet/model/formats/gray_stem.hpp"

namespace chexnet {
namespace {

// Only one of the two families of networks has its stem under these names.
void turn_stem(const InputScale& scale, FloatTensors& tensors) {
  const auto& [dense, residual] = kStems;
  const StemNames& names = tensors.contains(dense.weight) ? dense : residual;
  FloatTensor& weight = tensors[names.weight];
  FloatTensor& mean = tensors[names.running_mean];
  const StemWeights gray = to_gray_stem({weight, mean}, scale);
  weight = gray.weight;
  mean = gray.running_mean;
}

}  // namespace

// All arrays keep their position and metadata, so a file that is read back says
// the same; arrays of another type become fp32, which the others' loaders
// expect.
void write_named_weights(const std::filesystem::path& path,
                         const SafetensorsFile& file,
                         const ModelDescription& model, WeightsFor library) {
  FloatTensors tensors = float_tensors(file, path.string());
  if (library == WeightsFor::kTorchxrayvision)
    turn_stem({model.mean, model.std}, tensors);
  std::vector<NamedArray> arrays;
  for (const NamedArray& from : file.arrays()) {
    NamedArray& to = arrays.emplace_back(from);
    const auto found = tensors.find(from.name);
    if (found == tensors.end()) continue;  // num_batches_tracked
    to.type = ElementType::kF32;
    to.shape = found->second.shape;
    to.data = std::as_bytes(std::span(found->second.values));
  }
  auto metadata = file.metadata();
  // Thresholds and calibration are of the model as it was.
  if (library == WeightsFor::kTorchxrayvision)
    std::erase_if(metadata, [](const auto& entry) {
      return entry.first.starts_with("chexnet.decision_rules");
    });
  write_safetensors(path, arrays, metadata);
}

}  // namespace chexnet
