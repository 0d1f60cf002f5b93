#include "chexnet/train/device.hpp"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdlib>

#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/machine/gpu_access.hpp"

namespace chexnet {
namespace {

// Work on the default CUDA stream waits for all other streams, and cannot be
// captured.
void compute_on_own_stream(at::Device device) {
  const c10::impl::VirtualGuardImpl streams(device.type());
  streams.exchangeStream(streams.getStreamFromGlobalPool(device));
}

int shared_by(const std::vector<std::string>& of_ranks,
              const std::string& mine) {
  int count = 0;
  for (const auto& text : of_ranks) count += text == mine ? 1 : 0;
  return count;
}

// Throws on every rank when one has a problem.
void refuse_on_all(Communicator& comm, const std::string& problem) {
  if (!any_rank(comm, !problem.empty())) return;
  if (problem.empty())
    throw DeviceError(
        "[device] another rank cannot use its GPU. Hint: see its message");
  throw DeviceError("[device] {}: {}", host_name(), problem);
}

// Why ranks may have met on one of `count` GPUs, and what to do.
std::string sharing_hint(int count) {
  const char* variable = process_environment()("CUDA_VISIBLE_DEVICES");
  const std::string visible = variable == nullptr ? "" : variable;
  const bool mig_list =
      visible.starts_with("MIG-") && visible.find(',') != std::string::npos;
  if (mig_list)
    return "CUDA shows a process the first MIG device of CUDA_VISIBLE_DEVICES "
           "alone: give each rank its own (srun --gpus-per-task=1)";
  return "start one rank per GPU: this host shows " + std::to_string(count);
}

// Every rank must come to the same decision, so each test below asks all ranks
// (any_rank): a rank that threw alone would leave the others in the next
// collective.
//
// A rank's GPU, or nothing where ranks compute on CPUs; the same decision on
// every rank.
void choose_gpu(const LaunchConfig& config, Communicator& comm,
                Device& device) {
  if (config.device != DeviceKind::kCpu) {
    const GpuAccess& access = CudaLibrary::access();
    refuse_on_all(comm, access.problem.empty() ? "" : access.problem.text());
    device.cuda = access.library;
  }
  // Every rank must decide alike, so a node whose driver is broken is an error
  // and not a slow rank.
  const bool some_have = any_rank(comm, device.cuda != nullptr);
  const bool some_lack = any_rank(comm, device.cuda == nullptr);
  if (config.device == DeviceKind::kCuda && some_lack)
    throw DeviceError(
        "[device] launch.device=cuda, but {} sees no GPU. Hint: `chexnet-train "
        "doctor` there shows what is missing{}",
        device.cuda != nullptr ? "another rank" : host_name(), kOrOnCpu);
  if (some_have && some_lack)
    throw DeviceError(
        "[device] only some of the ranks see a GPU ({}{}). Hint: check "
        "CUDA_VISIBLE_DEVICES and the driver, or set launch.device=cpu",
        host_name(), device.cuda ? " does" : " does not");
  if (device.cuda == nullptr) return;
  const int count = device.cuda->device_count();
  const int index = comm.world().local_rank % count;
  device.cuda->select(index);
  device.where =
      at::Device(device.cuda->device_kind() + ":" + std::to_string(index));
  compute_on_own_stream(device.where);
  device.gpu = device.cuda->info(index);
  const std::string place = host_name() + " " + device.gpu.uuid;
  const bool doubled = shared_by(gather_text(comm, place), place) > 1;
  if (any_rank(comm, doubled))
    throw DeviceError(
        "[device] two ranks share one GPU ({} {} on {}). Hint: {}",
        device.gpu.name, device.gpu.uuid, host_name(), sharing_hint(count));
  const std::string slot = host_name() + " " + device.gpu.slot;
  if (any_rank(comm, shared_by(gather_text(comm, slot), slot) > 1))
    throw DeviceError(
        "[device] two ranks are on MIG devices of one GPU, on which NCCL "
        "starts one rank alone. Hint: whole GPUs, or one rank on each");
  const std::string kernels = device.cuda->kernels_problem();
  if (!kernels.empty())
    log_warning(kernels + ". On " + host_name() +
                " LibTorch's kernels compute alone, which is slower");
  device.own_kernels = !any_rank(comm, !kernels.empty());
  const std::string idle =
      idle_gpus_problem(process_environment(), count, comm.world().local_size);
  if (config.ranks_per_node == 0 && any_rank(comm, !idle.empty()))
    throw DeviceError(
        idle.empty() ? "[device] another host has idle GPUs; see its message"
                     : idle);
}

int compute_threads(const LaunchConfig& config, int cores) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  constexpr long kMost = 1024;                       // of launch.threads too
  const char* omp = std::getenv("OMP_NUM_THREADS");  // PBS's ompthreads
  const long of_job = omp == nullptr ? 0 : std::strtol(omp, nullptr, 10);
  if (of_job > kMost)
    throw ConfigError(
        "[launch] OMP_NUM_THREADS={} is more threads than a rank can have. "
        "Hint: at most {}; launch.threads counts before it",
        omp, kMost);
  return of_job > 0 ? static_cast<int>(of_job) : cores;
}

std::string describe(const Device& device, const std::string& cpus) {
  if (device.cuda == nullptr)
    return "CPU " + cpus + ", " + counted(device.threads, "thread") +
           " per rank";
  const GpuInfo& gpu = device.gpu;
  return gpu.name + " (sm_" + std::to_string(gpu.major) +
         std::to_string(gpu.minor) + ", " +
         readable_bytes(static_cast<double>(gpu.memory_bytes)) + "), " +
         device.cuda->versions();
}

}  // namespace

// FLOP of a multiprocessor in a clock: 2 for each multiply-add of its table
// "Throughput of Native Arithmetic Instructions" (CUDA C++ Programming Guide),
// and of the architectures' white papers for tensor cores, dense.
double peak_flops(const GpuInfo& gpu, Precision precision) {
  struct Row {
    int major, minor;  // the first of those alike
    double fp32, tf32, half;
  };
  static constexpr Row kRows[] = {
      {7, 0, 128, 0, 1024},     {8, 0, 128, 1024, 2048},
      {8, 6, 256, 512, 1024},   {9, 0, 256, 2048, 4096},
      {10, 0, 256, 4096, 8192}, {12, 0, 256, 512, 1024}};
  const Row* row = nullptr;
  for (const auto& candidate : kRows)
    if (std::pair(gpu.major, gpu.minor) >=
        std::pair(candidate.major, candidate.minor))
      row = &candidate;
  if (row == nullptr || gpu.major > 12) return 0;
  double flops = 0;
  if (precision == Precision::kFp32) flops = row->fp32;
  if (precision == Precision::kTf32)
    flops = row->tf32 > 0 ? row->tf32 : row->fp32;
  if (precision == Precision::kBf16 || precision == Precision::kFp16)
    flops = row->half;
  return flops * gpu.multiprocessors * gpu.clock_hz;
}

Device choose_device(const LaunchConfig& config, Communicator& comm) {
  Device device;
  choose_gpu(config, comm, device);
  const RankPlacement placement =
      place_ranks(comm, config.bind, {device.gpu.uuid, device.gpu.name},
                  started_as_rank(process_environment()));
  device.placements = placement.table;
  for (const auto& warning : placement.warnings) log_warning(warning);
  const std::string narrow =
      narrow_step_problem(process_environment(), placement.cpus.size());
  if (!narrow.empty()) log_warning(narrow);
  device.cores = placement.cores;
  device.threads = compute_threads(config, device.cores);
  at::set_num_threads(device.threads);
  device.description = describe(device, cpu_list_text(placement.cpus));
  return device;
}

}  // namespace chexnet
