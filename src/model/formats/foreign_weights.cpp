// Others' weights by torchvision's names. Arrays stay where the file is mapped;
// only a gray stem, which is turned into one of three channels, is copied.
#include "chexnet/model/formats/foreign_weights.hpp"

#include <cstring>

#include "chexnet/core/error.hpp"
#include "weight_names.hpp"

namespace chexnet {
namespace {

FloatTensor copy_of(const NamedArray& array) {
  FloatTensor tensor{array.shape, {}};
  tensor.values.resize(array.data.size() / sizeof(float));
  std::memcpy(tensor.values.data(), array.data.data(), array.data.size());
  return tensor;
}

void put(const FloatTensor& tensor, NamedArray& array) {
  array.shape = tensor.shape;
  array.data = std::as_bytes(std::span(tensor.values));
}

}  // namespace

ForeignWeights::ForeignWeights(const SafetensorsFile& file, std::string origin,
                               const InputScale& scale)
    : origin_(std::move(origin)), arrays_(file.arrays()) {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    std::string& name = arrays_[i].name;
    names_in_file_.push_back(name);
    name = torchvision_name(name);
    const auto [there, is_new] = index_.emplace(name, i);
    if (!is_new)
      throw CheckpointError(
          "[weights] {}: {} and {} would both be {}. Hint: the file holds two "
          "networks; keep one",
          origin_, names_in_file_[there->second], names_in_file_[i], name);
  }
  turn_gray_stem(scale);
}

// TorchXRayVision reads one channel in its own scale of pixels. The weight is
// spread over three channels, and the scale goes into it and into the next
// running mean, so that the network computes the same from our input.
void ForeignWeights::turn_gray_stem(const InputScale& scale) {
  for (const auto& [convolution, mean] : kStems) {
    NamedArray* weight = find_own(convolution);
    NamedArray* running_mean = find_own(mean);
    if (weight == nullptr || running_mean == nullptr) continue;
    if (weight->shape.size() != 4 || weight->shape[1] != 1) continue;
    if (weight->type != ElementType::kF32 ||
        running_mean->type != ElementType::kF32 ||
        running_mean->shape != std::vector{weight->shape[0]})
      throw CheckpointError(
          "[weights] {}: {} has one channel and cannot be turned into three. "
          "Hint: in fp32, with a running mean of its BatchNorm, it can",
          origin_, name_in_file(convolution));
    stem_ = from_gray_stem({copy_of(*weight), copy_of(*running_mean)}, scale);
    put(stem_.weight, *weight);
    put(stem_.running_mean, *running_mean);
  }
}

NamedArray* ForeignWeights::find_own(const std::string& name) {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &arrays_[found->second];
}

const NamedArray* ForeignWeights::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &arrays_[found->second];
}

const std::string& ForeignWeights::name_in_file(const std::string& name) const {
  return names_in_file_[index_.at(name)];
}

std::string ForeignWeights::text() const {
  size_t renamed = 0;
  std::string first;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i].name == names_in_file_[i]) continue;
    if (renamed++ == 0) first = names_in_file_[i] + " as " + arrays_[i].name;
  }
  std::string text;
  if (renamed > 0)
    text =
        std::to_string(renamed) + " tensors read by other names, e.g. " + first;
  if (has_gray_stem())
    text += std::string(text.empty() ? "" : "; ") +
            "the first convolution has one channel: taken for "
            "TorchXRayVision's, pixels from -1024 to 1024";
  return text;
}

}  // namespace chexnet
