// Two files of a checkpoint:
//
//   model.safetensors      name -> weights, running statistics; metadata
//                          "chexnet": the description (JSON) that makes the
//                          file enough to score with anywhere;
//                          "chexnet.decision_rules": thresholds and
//                          calibration, once validation was scored, and
//                          "chexnet.decision_rules_sha256" of that text
//   optimizer.safetensors  slot/name -> state; metadata "steps", and
//                          "late_steps" of what thawed since. Where the
//                          model is an average, trained/name -> the weights and
//                          running statistics of the last step
//
// Flat buffers are cut at parameter borders, so the files do not depend on
// ranks or buckets, and PyTorch reads the first one by its names.
#include "chexnet/train/network_state.hpp"

#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "chexnet/core/checksum.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/safetensors.hpp"
#include "chexnet/model/weights.hpp"
#include "device_deadline.hpp"
#include "metadata_json.hpp"

namespace chexnet {
namespace {

std::span<std::byte> bytes_of(const at::Tensor& host) {
  return {static_cast<std::byte*>(host.mutable_data_ptr()), host.nbytes()};
}

void share(Communicator& comm, const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU).contiguous();
  comm.broadcast(bytes_of(host), 0);
  if (!host.is_same(tensor)) tensor.copy_(host);
}

// A flat buffer with the layout of the values, by parameter.
struct Slot {
  std::string name;
  at::Tensor flat;
};
std::vector<Slot> slots_of(const Optimizer& optimizer,
                           const WeightAverage* average) {
  std::vector<Slot> slots;
  for (const auto& [name, flat] : optimizer.slots())
    slots.push_back({name, flat});
  if (average != nullptr && average->is_on())
    slots.push_back({"trained", average->values()});
  return slots;
}

const char* const kRunning = "trained/running_statistics";

bool is_finite(const at::Tensor& host) {
  return host.isfinite().all().item<bool>();
}

ElementType element_type(const at::Tensor& host) {
  return host.scalar_type() == at::kDouble ? ElementType::kF64
                                           : ElementType::kF32;
}

}  // namespace

void write_network(const std::filesystem::path& folder,
                   const Parameters& parameters, const Optimizer& optimizer,
                   int64_t step, const std::string& description,
                   WeightAverage* average) {
  std::optional<AverageInUse> averaged;
  if (average != nullptr) averaged.emplace(*average);
  save_weights(folder / "model.safetensors", parameters, step,
               {{"format", "pt"}, {"chexnet", description}});
  std::vector<at::Tensor> alive;
  std::vector<NamedArray> arrays;
  for (const auto& [slot, flat] : slots_of(optimizer, average)) {
    const at::Tensor host = flat.to(at::kCPU);
    for (const auto& p : parameters.list()) {
      const at::Tensor& values =
          alive.emplace_back(parameters.part(host, p).contiguous());
      arrays.push_back(
          {slot + "/" + p.name, element_type(host), p.shape, bytes_of(values)});
    }
  }
  if (average != nullptr && average->is_on()) {
    const at::Tensor& running =
        alive.emplace_back(average->running().to(at::kCPU).contiguous());
    arrays.push_back({kRunning,
                      element_type(running),
                      {running.numel()},
                      bytes_of(running)});
  }
  write_safetensors(folder / "optimizer.safetensors", arrays,
                    {{"steps", std::to_string(optimizer.steps().all)},
                     {"late_steps", std::to_string(optimizer.steps().late)}});
}

std::string not_finite_state(const Parameters& parameters,
                             const Optimizer& optimizer,
                             const WeightAverage* average) {
  std::vector<Slot> slots = slots_of(optimizer, average);
  slots.insert(slots.begin(), {"weights", parameters.flat_values()});
  for (const auto& [slot, flat] : slots) {
    const at::Tensor host = flat.to(at::kCPU);
    if (is_finite(host)) continue;
    for (const auto& p : parameters.list())
      if (!is_finite(parameters.part(host, p))) return slot + "/" + p.name;
  }
  if (!is_finite(parameters.flat_running().to(at::kCPU)))
    return "running statistics of the BatchNorms";
  if (average != nullptr && average->is_on() &&
      !is_finite(average->running().to(at::kCPU)))
    return kRunning;
  return "";
}

namespace {

// The names as the file has them.
nlohmann::json as_stored(const std::vector<std::string>& names) {
  return nlohmann::json::parse(json_text(nlohmann::json(names)));
}

}  // namespace

void check_same_data(const std::filesystem::path& folder,
                     const Dataset& dataset) {
  const auto path = folder / "model.safetensors";
  const auto json = description_of(SafetensorsFile(path), path);
  if (json.value("finding_names_sha256", "") !=
      dataset.manifest.finding_names_sha256)
    throw CheckpointError(
        "[checkpoint] {}: was trained with another data.finding_names, so its "
        "labels differ. Hint: resume with that file, or start a new run with "
        "--out",
        path.string());
  const nlohmann::json::json_pointer train_sum("/splits/train/sha256");
  if (!json.contains(train_sum) ||
      json.at(train_sum) != dataset.splits.train.sha256)
    throw CheckpointError(
        "[checkpoint] {}: was trained on another training split than this "
        "config makes. Hint: resume with the lists, table and seed of that run "
        "(its config.yaml and split.csv)",
        path.string());
  if (json.value("manifest_sha256", "") != dataset.manifest.sha256)
    log_warning("[checkpoint] " + dataset.manifest.path +
                " is not the file this run started with: labels may differ "
                "(NIH released two "
                "versions)");
}

void read_network(const std::filesystem::path& path, const Config& config,
                  const std::vector<std::string>& findings,
                  Parameters& parameters) {
  take_network(SafetensorsFile(path), path, config, findings, parameters);
}

void take_network(const SafetensorsFile& file,
                  const std::filesystem::path& path, const Config& config,
                  const std::vector<std::string>& findings,
                  Parameters& parameters) {
  const auto json = description_of(file, path);
  const auto differs = [&](const std::string& what, const std::string& saved,
                           const std::string& asked) {
    throw CheckpointError(
        "[checkpoint] {}: its {} is {}, the config says {}. Hint: use the "
        "config of that run, or another checkpoint",
        path.string(), what, saved, asked);
  };
  const std::string arch = choice_name(config.model.arch);
  if (json.value("arch", "") != arch)
    differs("network", json.value("arch", "?"), arch);
  if (field(json, "findings") != as_stored(findings))
    differs("list of findings", json_text(field(json, "findings")),
            json_text(nlohmann::json(findings)));
  const auto wanted = preprocessing_json(config.data);
  const auto saved = field(json, "preprocessing");
  if (saved != wanted)
    differs("preprocessing", json_text(saved), json_text(wanted));
  DeviceDeadline deadline(parameters.flat_values().device(),
                          config.launch.timeout_s, "taking in the weights");
  const auto wait = deadline.wait();
  load_weights(file, path.string(), findings, parameters,
               {.scale = {config.data.mean, config.data.std}});
}

void read_optimizer(const std::filesystem::path& folder,
                    const Parameters& parameters, Optimizer& optimizer,
                    WeightAverage* average) {
  const auto path = folder / "optimizer.safetensors";
  const SafetensorsFile file(path);
  const auto read = [&](const std::string& name, const at::Tensor& values,
                        const std::vector<int64_t>& shape) {
    const NamedArray* array = file.find(name);
    if (array == nullptr || array->data.size() != values.nbytes())
      throw CheckpointError(
          "[checkpoint] {}: no state '{}' of the right size. Hint: was the run "
          "started with another optimizer or precision?",
          path.string(), name);
    const at::Tensor stored =
        at::from_blob(const_cast<std::byte*>(array->data.data()), shape,
                      values.options().device(at::kCPU));
    if (!is_finite(stored))
      throw CheckpointError(
          "[checkpoint] {}: {} is not finite. Hint: the training had gone "
          "wrong by then; move this checkpoint away to resume from the one "
          "before it",
          path.string(), name);
    values.copy_(stored);
  };
  for (const auto& [slot, flat] : slots_of(optimizer, average)) {
    at::Tensor host = flat.to(at::kCPU).clone();
    for (const auto& p : parameters.list())
      read(slot + "/" + p.name, parameters.part(host, p), p.shape);
    at::Tensor target = flat;
    target.copy_(host);
  }
  optimizer.set_steps({std::stoll(file.metadata().at("steps")),
                       std::stoll(file.metadata().at("late_steps"))});
  if (average == nullptr || !average->is_on()) return;
  read(kRunning, average->running(), {average->running().numel()});
  average->swap();
}

std::string parameters_sha256(const Parameters& parameters) {
  Sha256 sum;
  for (const at::Tensor& flat :
       {parameters.flat_values(), parameters.flat_running()})
    sum.update(bytes_of(flat.to(at::kCPU).contiguous()));
  return sum.hex();
}

void broadcast_from_rank_0(Communicator& comm, Parameters& parameters,
                           Optimizer* optimizer, WeightAverage* average) {
  if (comm.size() > 1) {
    share(comm, parameters.flat_values());
    share(comm, parameters.flat_running());
    if (optimizer != nullptr) {
      for (const auto& [name, flat] : optimizer->slots()) share(comm, flat);
      const Optimizer::Steps own =
          comm.rank() == 0 ? optimizer->steps() : Optimizer::Steps{};
      std::array<double, 2> steps = {static_cast<double>(own.all),
                                     static_cast<double>(own.late)};
      comm.all_reduce(steps, ReduceOp::kMax);
      optimizer->set_steps(
          {static_cast<int64_t>(steps[0]), static_cast<int64_t>(steps[1])});
    }
    if (average != nullptr && average->is_on()) {
      share(comm, average->values());
      share(comm, average->running());
    }
    const auto hashes = gather_text(comm, parameters_sha256(parameters));
    for (size_t r = 1; r < hashes.size(); ++r)
      if (hashes[r] != hashes[0])
        throw DeviceError(
            "[train] rank {} has other weights than rank 0 after the "
            "broadcast. Hint: hardware or transport fault",
            r);
  }
  parameters.refresh_compute_copies();
}

}  // namespace chexnet
