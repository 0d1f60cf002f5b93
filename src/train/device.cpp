#include "chexnet/train/device.hpp"

#include <ATen/Parallel.h>

#include "chexnet/core/error.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {
namespace {

int shared_by(const std::vector<std::string>& of_ranks, const std::string& mine) {
  int count = 0;
  for (const auto& text : of_ranks) count += text == mine ? 1 : 0;
  return count;
}

}  // namespace

Device choose_device(const LaunchConfig& config, Communicator& comm) {
  Device device;
  const auto cpus = allowed_cpus();
  device.cpus = cpu_list_text(cpus);
  const std::string seat = host_name() + " " + device.cpus;
  const int sharers = shared_by(gather_text(comm, seat), seat);
  device.cores = threads_for(cpus.size(), sharers);
  device.threads = config.threads > 0 ? static_cast<int>(config.threads) : device.cores;
  at::set_num_threads(device.threads);
  if (config.device != "cpu") device.cuda = CudaLibrary::open_if_present();
  // Every rank must decide alike, so a node whose driver is broken is an error and not a slow rank.
  const bool some_have = any_rank(comm, device.cuda != nullptr);
  const bool some_lack = any_rank(comm, device.cuda == nullptr);
  if (config.device == "cuda" && some_lack)
    throw DeviceError(
        "[device] launch.device=cuda, but " + host_name() +
        " has no usable GPU or one of the ranks has none. Hint: nvidia-smi; is the driver loaded?");
  if (some_have && some_lack)
    throw DeviceError(
        "[device] only some of the ranks see a GPU (" + host_name() +
        (device.cuda ? " does" : " does not") +
        "). Hint: check CUDA_VISIBLE_DEVICES and the driver, or set launch.device=cpu");
  if (device.cuda == nullptr) {
    device.description =
        "CPU " + device.cpus + ", " + std::to_string(device.threads) + " threads a rank";
    return device;
  }
  const int count = device.cuda->device_count();
  const int index = comm.world().local_rank % count;
  device.cuda->select(index);
  device.where = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
  device.gpu = device.cuda->info(index);
  const std::string place = host_name() + " " + device.gpu.uuid;
  const bool doubled = shared_by(gather_text(comm, place), place) > 1;
  if (any_rank(comm, doubled))
    throw DeviceError("[device] two ranks share one GPU (" + device.gpu.name + " " +
                      device.gpu.uuid + " on " + host_name() +
                      "). Hint: start one rank per GPU: this host shows " + std::to_string(count));
  device.description = device.gpu.name + " (sm_" + std::to_string(device.gpu.major) +
                       std::to_string(device.gpu.minor) + ", " +
                       readable_bytes(static_cast<double>(device.gpu.memory_bytes)) + "), " +
                       device.cuda->versions();
  return device;
}

std::unique_ptr<Communicator> gradient_communicator(std::unique_ptr<Communicator> host,
                                                    const Device& device,
                                                    const LaunchConfig& config) {
  if (device.cuda == nullptr || host->size() == 1) return host;
  return device.cuda->make_nccl(std::move(host), device.where.index(), config.timeout_s);
}

Precision resolve_precision(const std::string& name, const Device& device) {
  if (name != "auto") return precision_of(name);
  if (device.cuda == nullptr) return Precision::kFp32;
  return device.gpu.major >= 8 ? Precision::kBf16 : Precision::kFp16;
}

Network::Options network_options(const Config& config, const Device& device, Communicator& comm) {
  return {.device = device.where,
          .precision = resolve_precision(config.train.precision, device),
          .sync_batchnorm = config.model.sync_batchnorm ? &comm : nullptr,
          .freeze_backbone = config.model.freeze_backbone,
          .own_engine = config.train.engine != "aten",
          .winograd = config.train.deterministic != "strict",
          .mean = config.data.mean,
          .std = config.data.std};
}

Wire wire_of(const std::string& name) {
  if (name == "fp16") return Wire::kFp16;
  return name == "bf16" ? Wire::kBf16 : Wire::kExact;
}

}  // namespace chexnet
