// A file fits when it has every tensor of the backbone in its shape. The
// classifier may be of other findings: its rows are matched by the names in the
// file's metadata, and the rest starts afresh. All is checked before the first
// value is copied, so a refused file changes nothing.
#include "chexnet/model/weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "chexnet/core/error.hpp"
#include "chexnet/data/findings.hpp"
#include "thread_scope.hpp"

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

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

struct NetworkTensor {
  at::Tensor values;  // a view: copying into it sets the network
  bool is_head = false;
};
using NetworkTensors = std::map<std::string, NetworkTensor>;

// Every tensor of the network that a file holds, by name.
NetworkTensors named_tensors(const Parameters& parameters) {
  NetworkTensors tensors;
  const auto& list = parameters.list();
  for (const auto& p : list)
    tensors[p.name] = {parameters.part(parameters.flat_values(), p),
                       p.is_head()};
  for (size_t i = 0; i < parameters.statistics().size(); ++i) {
    const auto& name = parameters.statistics()[i].name;
    tensors[name + ".running_mean"] = {
        parameters.running_mean(static_cast<int>(i))};
    tensors[name + ".running_var"] = {
        parameters.running_var(static_cast<int>(i))};
  }
  return tensors;
}

// No copy: it lives as long as the file does, and nobody writes to it.
at::Tensor view_of(const NamedArray& array) {
  return at::from_blob(const_cast<std::byte*>(array.data.data()), array.shape,
                       at::TensorOptions().dtype(scalar_type(array.type)));
}

// Whether a classifier's tensor differs from the network's in the number of
// findings only.
bool rows_fit(const NamedArray& array, const at::Tensor& tensor) {
  const auto wanted = tensor.sizes();
  if (array.shape.empty() || array.shape.size() != wanted.size()) return false;
  return std::equal(wanted.begin() + 1, wanted.end(), array.shape.begin() + 1);
}

// Where each row of the network's classifier stands in the file's.
using Rows = std::vector<std::optional<size_t>>;

Rows match_rows(const std::vector<std::string>& known,
                const std::vector<std::string>& wanted, LoadReport& report) {
  Rows rows;
  std::set<size_t> used;
  for (const auto& name : wanted) {
    rows.push_back(find_finding(known, name));
    (rows.back() ? report.taken : report.afresh).push_back(name);
    if (rows.back()) used.insert(*rows.back());
  }
  for (size_t k = 0; k < known.size(); ++k)
    if (!used.contains(k)) report.left_out.push_back(known[k]);
  return rows;
}

void copy_rows(const at::Tensor& from, const Rows& rows, const at::Tensor& to) {
  for (size_t k = 0; k < rows.size(); ++k)
    if (rows[k])
      to.select(0, static_cast<int64_t>(k))
          .copy_(from.select(0, static_cast<int64_t>(*rows[k])));
}

// The unusable parts of the file, in words; fills report.missing.
std::vector<std::string> unfit_tensors(const ForeignWeights& file,
                                       const NetworkTensors& tensors,
                                       size_t named_rows, LoadReport& report) {
  std::vector<std::string> unfit;
  for (const auto& [name, tensor] : tensors) {
    const NamedArray* array = file.find(name);
    if (array == nullptr) {
      report.missing.push_back(name);
      if (!tensor.is_head) unfit.push_back(name + " (absent)");
    } else if (!tensor.is_head && array->shape != tensor.values.sizes().vec()) {
      unfit.push_back(name + " is " + shape_text(array->shape) + ", wanted " +
                      shape_text(tensor.values.sizes().vec()));
    } else if (tensor.is_head && named_rows > 0 &&
               (!rows_fit(*array, tensor.values) ||
                array->shape[0] != static_cast<int64_t>(named_rows))) {
      unfit.push_back(name + " is " + shape_text(array->shape) + " for " +
                      std::to_string(named_rows) + " named findings");
    }
  }
  return unfit;
}

// The first tensor of the file that is none of the network's: what to check
// when names do not fit.
std::string first_unmatched(const ForeignWeights& file,
                            const NetworkTensors& tensors) {
  for (const auto& array : file.arrays()) {
    if (tensors.contains(array.name) ||
        array.name.ends_with(".num_batches_tracked"))
      continue;
    const std::string& own = file.name_in_file(array.name);
    return own + " " + shape_text(array.shape) +
           (own == array.name ? "" : " (read as " + array.name + ")");
  }
  return "";
}

[[noreturn]] void refuse_unfit(const std::string& origin,
                               const ForeignWeights& file,
                               const NetworkTensors& tensors,
                               const std::vector<std::string>& unfit) {
  std::vector<std::string> names;
  for (const auto& array : file.arrays()) names.push_back(array.name);
  const std::string wanted = unfit.front().substr(0, unfit.front().find(' '));
  const std::string unmatched = first_unmatched(file, tensors);
  throw CheckpointError(
      "[weights] {}: {} tensors do not fit this network, e.g. {}{}. Hint: "
      "another model.arch? Names of torchvision, timm, torchxrayvision and "
      "CheXNet reproductions are known; nearest names in the file: {}",
      origin, unfit.size(), listed(unfit, 3),
      unmatched.empty()
          ? ""
          : "; first of the file that is none of its: " + unmatched,
      nearest_names(wanted, names));
}

// On the host, before a device waits for them.
void check_values(const ForeignWeights& file, const NetworkTensors& tensors,
                  const std::string& origin) {
  const auto refuse = [&](const std::string& name, const char* what) {
    throw CheckpointError(
        "[weights] {}: {} {}. Hint: the network diverged, or the file is "
        "damaged; take an earlier checkpoint or other weights",
        origin, name, what);
  };
  const auto finite = [](const at::Tensor& values) {
    return values.isfinite().all().item<bool>();
  };
  for (const auto& [name, tensor] : tensors) {
    const NamedArray* array = file.find(name);
    if (array == nullptr) continue;
    const at::Tensor values = view_of(*array);
    if (!finite(values)) refuse(name, "is not finite");
    if (!finite(values.to(tensor.values.scalar_type())))
      refuse(name, "has a number too large for fp32");
    if (name.ends_with(".running_var") && values.lt(0).any().item<bool>())
      refuse(name, "has a negative variance");
  }
}

}  // namespace

std::string LoadReport::taken_text() const {
  return taken.empty() ? "" : "classifier taken over by name: " + listed(taken);
}

std::string LoadReport::left_out_text() const {
  std::string text;
  if (unnamed > 0)
    text += "classifier of " + std::to_string(unnamed) +
            " outputs whose findings the file does not name, started afresh; ";
  if (unnamed == 0 && !afresh.empty())
    text += "started afresh: " + listed(afresh) + "; ";
  if (!left_out.empty())
    text += "of the file, not wanted: " + listed(left_out) + "; ";
  if (!missing.empty()) text += "not in the file: " + listed(missing, 3) + "; ";
  if (!extra.empty())
    text += "not of this network, ignored: " + listed(extra, 3) + "; ";
  if (!text.empty()) text.resize(text.size() - 2);
  return text;
}

std::vector<std::string> findings_of(const SafetensorsFile& file,
                                     const std::string& origin) {
  const auto found = file.metadata().find("chexnet");
  if (found == file.metadata().end()) return {};
  try {
    return nlohmann::json::parse(found->second)
        .at("findings")
        .get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& e) {
    throw CheckpointError(
        "[weights] {}: its description is damaged: {}. Hint: metadata "
        "'chexnet' is JSON with a list 'findings'",
        origin, e.what());
  }
}

LoadReport load_weights(const SafetensorsFile& from, const std::string& origin,
                        const std::vector<std::string>& findings,
                        Parameters& parameters, const LoadOptions& options) {
  // A team of threads for each of some hundred small copies costs more than it
  // saves: on a busy machine its threads spin while they wait for each other.
  const ThreadScope one_thread(1);
  const ForeignWeights file(from, origin, options.scale);
  LoadReport report;
  report.read_as = file.text();
  const auto tensors = named_tensors(parameters);
  const bool has_head = std::ranges::any_of(tensors, [&](const auto& t) {
    return t.second.is_head && file.find(t.first) != nullptr;
  });
  std::vector<std::string> known;
  if (has_head)
    known =
        options.outputs.empty() ? findings_of(from, origin) : options.outputs;
  const auto unfit = unfit_tensors(file, tensors, known.size(), report);
  if (!unfit.empty()) refuse_unfit(origin, file, tensors, unfit);
  check_values(file, tensors, origin);
  const Rows rows = match_rows(known, findings, report);
  for (const auto& [name, tensor] : tensors) {
    const NamedArray* array = file.find(name);
    if (array == nullptr) continue;
    if (!tensor.is_head)
      tensor.values.copy_(view_of(*array));
    else if (!known.empty())
      copy_rows(view_of(*array), rows, tensor.values);
    else if (!array->shape.empty())
      report.unnamed = array->shape[0];
  }
  for (const auto& array : file.arrays())
    if (!tensors.contains(array.name) &&
        !array.name.ends_with(".num_batches_tracked"))
      report.extra.push_back(array.name);
  parameters.refresh_compute_copies();
  return report;
}

void save_weights(const std::filesystem::path& path,
                  const Parameters& parameters, int64_t steps,
                  const Metadata& metadata) {
  std::vector<at::Tensor> alive;  // host copies, until they are written
  std::vector<NamedArray> arrays;
  for (const auto& [name, tensor] : named_tensors(parameters)) {
    const at::Tensor& host =
        alive.emplace_back(tensor.values.to(at::kCPU).contiguous());
    arrays.push_back(
        {name,
         host.scalar_type() == at::kDouble ? ElementType::kF64
                                           : ElementType::kF32,
         host.sizes().vec(),
         std::span(static_cast<const std::byte*>(host.const_data_ptr()),
                   host.nbytes())});
  }
  for (const auto& s : parameters.statistics())
    arrays.push_back({s.name + ".num_batches_tracked",
                      ElementType::kI64,
                      {},
                      std::as_bytes(std::span(&steps, 1))});
  write_safetensors(path, arrays, metadata);
}

}  // namespace chexnet
