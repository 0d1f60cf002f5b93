// doctor's rows of what only all ranks together can tell: clocks, speeds,
// links. Each function is entered by all ranks at once, and each rank hears all
// of it.
#include "link_rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "allreduce_bench.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/thread_pool.hpp"
#include "chexnet/model/engine/layer_times.hpp"

namespace chexnet {

std::vector<double> paces(Communicator& comm, const Device& device) {
  constexpr int kRounds = 5;
  ThreadPool thread_pool(device.threads);
  double mine = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    comm.barrier();
    const double start = now_s();
    fma_gflops(Arithmetic::kFp32, thread_pool);
    mine = std::min(mine, now_s() - start);
  }
  std::vector<double> all;
  for (const auto& bytes :
       comm.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    all.push_back(value);
  }
  return all;
}

double clock_skew(Communicator& comm) {
  comm.barrier();
  const double mine = system_time_s();
  std::array<double, 2> extremes = {mine, -mine};
  comm.all_reduce(extremes, ReduceOp::kMax);
  return extremes[0] + extremes[1];
}

std::vector<CheckResult> of_links(Communicator& comm, const Device& device) {
  std::vector<CheckResult> found;
  if (comm.size() == 1) {
    found.push_back({Level::kSkip, "links",
                     "one rank: start doctor with --ranks or mpirun", ""});
    return found;
  }
  const double latency = barrier_us(comm, 50);
  found.push_back(
      {latency < 1000 ? Level::kPass : Level::kWarn, "MPI",
       comm.description() + ", barrier " + fixed(latency, 1) + " us",
       latency < 1000
           ? ""
           : "is it on the fast network? launch.network=ib or tcp:IFACE"});
  const auto rows =
      measure_allreduce(comm, device, {4096, 262144, 4194304, 28e6}, 5);
  std::string text;
  for (const auto& row : rows)
    text += (text.empty() ? "" : ", ") + readable_bytes(row.bytes) + " " +
            fixed(row.bus_gb_per_s, 2);
  // DenseNet-121's fp32 gradients in a quarter of a second would hide behind
  // any backward.
  const bool slow = rows.back().us > 250e3;
  found.push_back(
      {slow ? Level::kWarn : Level::kPass, "all-reduce",
       text + " GB/s (bus bandwidth)",
       slow ? "compare with the link's figure; see `bench allreduce` and the "
              "transports above"
            : ""});
  return found;
}

std::vector<CheckResult> of_nccl(const NcclReport& report) {
  if (!report.not_recorded.empty())
    return {{Level::kWarn, "NCCL transports",
             "not recorded, as " + report.not_recorded, ""}};
  if (report.pairs.empty())
    return {{Level::kSkip, "NCCL transports", "no GPUs, or one rank", ""}};
  std::vector<CheckResult> found;
  size_t good = 0;
  for (const auto& pair : report.pairs) {
    if (pair.concern.empty()) {
      ++good;
      continue;
    }
    const auto colon = pair.concern.find(": ");
    found.push_back(
        {Level::kWarn,
         "NCCL " + std::to_string(pair.from) + " -> " + std::to_string(pair.to),
         pair.via + ": " + pair.concern.substr(0, colon),
         pair.concern.substr(colon + 2)});
  }
  found.push_back(
      {Level::kPass, "NCCL transports",
       std::to_string(good) + " of " + std::to_string(report.pairs.size()) +
           " pairs as good as they get, " + std::to_string(report.unknown) +
           " lines of unknown form",
       ""});
  return found;
}

}  // namespace chexnet
