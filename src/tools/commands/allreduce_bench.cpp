// Each round begins at a barrier, and the slowest rank's time counts: a rank
// that finishes early has only waited less. As nccl-tests counts, bandwidth on
// the bus is bytes / time x 2 (n - 1) / n, which a ring carries over each link
// and which does not depend on n.
#include "allreduce_bench.hpp"

#include <ATen/ATen.h>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/median.hpp"

namespace chexnet {
namespace {

constexpr int kWarmUp = 3;

// Median over the rounds of the slowest rank's time, the same on every rank.
template <class Work>
double median_s(Communicator& comm, int rounds, const Work& work) {
  std::vector<double> times;
  for (int round = -kWarmUp; round < rounds; ++round) {
    comm.barrier();
    const double start = now_s();
    work();
    if (round >= 0) times.push_back(now_s() - start);
  }
  comm.all_reduce(times, ReduceOp::kMax);
  return median(std::move(times));
}

}  // namespace

std::vector<AllReduceRow> measure_allreduce(Communicator& comm,
                                            const Device& device,
                                            const std::vector<double>& bytes,
                                            int rounds) {
  std::vector<AllReduceRow> rows;
  comm.set_compression(GradientCompression::kNone);
  for (const double size : bytes) {
    const auto count = std::max<int64_t>(1, static_cast<int64_t>(size / 4));
    const at::Tensor buffer =
        at::ones({count}, at::TensorOptions(at::kFloat).device(device.where));
    AllReduceRow row;
    row.bytes = 4.0 * static_cast<double>(count);
    const double seconds = median_s(comm, rounds, [&] {
      comm.start({buffer.mutable_data_ptr(), static_cast<size_t>(count)});
      comm.finish();
      comm.wait_until_finished();
    });
    row.us = 1e6 * seconds;
    row.alg_gb_per_s = 1e-9 * row.bytes / seconds;
    row.bus_gb_per_s = row.alg_gb_per_s * 2 * (comm.size() - 1) / comm.size();
    rows.push_back(row);
  }
  return rows;
}

double barrier_us(Communicator& comm, int rounds) {
  return 1e6 * median_s(comm, rounds, [&] { comm.barrier(); });
}

}  // namespace chexnet
