#include "chexnet/model/weights.hpp"

#include <ATen/ATen.h>

#include <map>
#include <set>

#include "chexnet/core/error.hpp"

namespace chexnet {
namespace {

at::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return at::kDouble;
    case ElementType::kF32:
      return at::kFloat;
    case ElementType::kF16:
      return at::kHalf;
    case ElementType::kBF16:
      return at::kBFloat16;
    case ElementType::kI64:
      return at::kLong;
    case ElementType::kU8:
      return at::kByte;
  }
  return at::kFloat;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

bool is_head(const std::string& name) {
  return name.starts_with("classifier.") || name.starts_with("fc.");
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > 3 ? text + " and " + std::to_string(names.size() - 3) + " more" : text;
}

// Every tensor of the network that a file holds, by name; views, so copying into them sets the
// network.
std::map<std::string, at::Tensor> named_tensors(const Parameters& parameters) {
  std::map<std::string, at::Tensor> tensors;
  const auto& list = parameters.list();
  for (const auto& p : list)
    tensors[p.name] = parameters.flat_values().narrow(0, p.begin, p.end - p.begin).view(p.shape);
  for (std::size_t i = 0; i < parameters.statistics().size(); ++i) {
    const auto& name = parameters.statistics()[i].name;
    tensors[name + ".running_mean"] = parameters.running_mean(static_cast<int>(i));
    tensors[name + ".running_var"] = parameters.running_var(static_cast<int>(i));
  }
  return tensors;
}

}  // namespace

std::string LoadReport::text() const {
  std::string text;
  if (!head.empty()) text += "classifier of another size, started afresh: " + listed(head) + "; ";
  if (!missing.empty()) text += "not in the file: " + listed(missing) + "; ";
  if (!extra.empty()) text += "not of this network, ignored: " + listed(extra) + "; ";
  if (!text.empty()) text.resize(text.size() - 2);
  return text;
}

LoadReport load_weights(const SafetensorsFile& file, const std::string& origin,
                        Parameters& parameters) {
  LoadReport report;
  const auto tensors = named_tensors(parameters);
  std::vector<std::string> unfit;
  for (const auto& [name, tensor] : tensors) {
    const NamedArray* array = file.find(name);
    if (array == nullptr) {
      report.missing.push_back(name);
      if (!is_head(name)) unfit.push_back(name + " (absent)");
      continue;
    }
    if (array->shape != tensor.sizes().vec()) {
      if (is_head(name))
        report.head.push_back(name + " " + shape_text(array->shape));
      else
        unfit.push_back(name + " is " + shape_text(array->shape) + ", wanted " +
                        shape_text(tensor.sizes().vec()));
    }
  }
  if (!unfit.empty()) {
    std::vector<std::string> names;
    for (const auto& array : file.arrays()) names.push_back(array.name);
    throw CheckpointError(
        "[weights] " + origin + ": " + std::to_string(unfit.size()) +
        " tensors do not fit this network, e.g. " + listed(unfit) +
        ". Hint: another model.arch? Old torchvision or CheXNet names are converted by "
        "scripts/reference/convert_weights.py; nearest names in the file: " +
        nearest_names(unfit.front().substr(0, unfit.front().find(' ')), names));
  }
  for (const auto& [name, tensor] : tensors) {
    const NamedArray* array = file.find(name);
    if (array == nullptr || array->shape != tensor.sizes().vec()) continue;
    at::Tensor target = tensor;
    target.copy_(at::from_blob(const_cast<std::byte*>(array->data.data()), tensor.sizes(),
                               at::TensorOptions().dtype(scalar_type(array->type))));
  }
  for (const auto& array : file.arrays())
    if (!tensors.contains(array.name) && !array.name.ends_with(".num_batches_tracked"))
      report.extra.push_back(array.name);
  parameters.refresh_compute_copies();
  return report;
}

void save_weights(const std::filesystem::path& path, const Parameters& parameters,
                  std::int64_t steps, const Metadata& metadata) {
  std::vector<at::Tensor> alive;  // host copies, until they are written
  std::vector<NamedArray> arrays;
  for (const auto& [name, tensor] : named_tensors(parameters)) {
    const at::Tensor& host = alive.emplace_back(tensor.to(at::kCPU).contiguous());
    arrays.push_back(
        {name, host.scalar_type() == at::kDouble ? ElementType::kF64 : ElementType::kF32,
         host.sizes().vec(),
         std::span(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes())});
  }
  for (const auto& s : parameters.statistics())
    arrays.push_back({s.name + ".num_batches_tracked",
                      ElementType::kI64,
                      {},
                      std::as_bytes(std::span(&steps, 1))});
  write_safetensors(path, arrays, metadata);
}

}  // namespace chexnet
