#include "chexnet/model/formats/float_tensors.hpp"

#include <algorithm>
#include <cstring>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

// The bytes of a file need not be aligned.
template <class Number>
std::vector<Number> numbers(const NamedArray& array) {
  std::vector<Number> values(array.data.size() / sizeof(Number));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

std::vector<float> rounded(const std::vector<double>& values) {
  std::vector<float> result(values.size());
  std::ranges::transform(values, result.begin(),
                         [](double v) { return static_cast<float>(v); });
  return result;
}

}  // namespace

FloatTensors float_tensors(const SafetensorsFile& file,
                           const std::string& origin) {
  FloatTensors tensors;
  for (const auto& array : file.arrays()) {
    if (array.name.ends_with(".num_batches_tracked")) continue;
    FloatTensor& tensor = tensors[array.name];
    tensor.shape = array.shape;
    if (array.type == ElementType::kF32)
      tensor.values = numbers<float>(array);
    else if (array.type == ElementType::kF64)
      tensor.values = rounded(numbers<double>(array));
    else
      throw CheckpointError(
          "[export] {}: {} is neither fp32 nor fp64. Hint: export a checkpoint "
          "as this program wrote it",
          origin, array.name);
  }
  return tensors;
}

}  // namespace chexnet
