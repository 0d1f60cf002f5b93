#include "chexnet/tools/plan/scaling_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace chexnet {

double allreduce_s(double bytes, int ranks, const Fabric& fabric) {
  if (ranks <= 1) return 0;
  const int gpus = std::min(ranks, fabric.gpus_per_node);
  const int nodes = (ranks + fabric.gpus_per_node - 1) / fabric.gpus_per_node;
  const double intra = fabric.intra_gb_per_s * 1e9,
               near = fabric.intra_latency_us * 1e-6;
  if (nodes == 1)
    return 2.0 * (gpus - 1) / gpus * bytes / intra + 2.0 * (gpus - 1) * near;
  const double slowest = std::min(intra, fabric.inter_gb_per_s * 1e9);
  const double far = fabric.inter_latency_us * 1e-6;
  // Of a ring's hops one in `gpus` leaves the host.
  const double hop =
      ((fabric.gpus_per_node - 1) * near + far) / fabric.gpus_per_node;
  const double ring =
      2.0 * (ranks - 1) / ranks * bytes / slowest + 2.0 * (ranks - 1) * hop;
  // Each host sends and receives all bytes twice, up the tree and down.
  const double tree =
      2.0 * bytes / slowest +
      2.0 * (std::log2(static_cast<double>(nodes)) * far + (gpus - 1) * near);
  return std::min(ring, tree);
}

double expected_largest_normal(int n) {
  if (n <= 1) return 0;
  // E = integral of (1 - F^n) over x > 0 minus that of F^n over x < 0, F the
  // normal distribution.
  constexpr double kStep = 1e-3, kEnd = 9;
  double sum = 0;
  for (double x = -kEnd + kStep / 2; x < kEnd; x += kStep) {
    const double power = std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), n);
    sum += (x > 0 ? 1 - power : -power) * kStep;
  }
  return sum;
}

Prediction predict(const StepCosts& step, const LoaderCosts& loader,
                   const Fabric& fabric, double batch, int ranks) {
  Prediction p;
  p.ranks = ranks;
  const double backward = step.backward_fraction * step.compute_s;
  const int buckets = std::max(
      1, static_cast<int>(std::ceil(step.gradient_bytes / step.bucket_bytes)));
  const double each =
      allreduce_s(step.gradient_bytes / buckets, ranks, fabric) +
      (ranks > 1 ? step.per_bucket_s : 0);
  if (step.overlap) {
    p.allreduce_s = buckets * each;
    double end = 0;
    for (int b = 1; b <= buckets; ++b)
      end = std::max(end, backward * b / buckets) + each;
    p.exposed_s = ranks > 1 ? end - backward : 0;
    p.interference_s =
        step.interference * std::min(backward, p.allreduce_s - p.exposed_s);
  } else {
    p.exposed_s = p.allreduce_s =
        allreduce_s(step.gradient_bytes, ranks, fabric);
  }
  // Everybody waits for the slowest of the ranks.
  p.straggler_s = step.jitter * step.compute_s * expected_largest_normal(ranks);
  p.coordination_s = ranks > 1 ? step.coordination_s : 0;
  const double computing = step.compute_s + p.exposed_s + p.interference_s +
                           p.straggler_s + p.coordination_s;
  p.step_s = computing;
  const double decoded = batch * (loader.every_rank_decodes_all ? ranks : 1);
  const double decoding =
      loader.images_per_s > 0 ? decoded / loader.images_per_s : 0;
  const double reading = loader.storage_gb_per_s > 0
                             ? decoded * ranks * loader.bytes_per_image /
                                   (loader.storage_gb_per_s * 1e9)
                             : 0;
  // What one rank decodes for itself is in its measured step already.
  if (loader.shares_cores)
    p.loader_s =
        decoding * (1 - batch / decoded) + std::max(0.0, reading - computing);
  else
    p.loader_s = std::max(0.0, std::max(decoding, reading) - computing);
  p.step_s += p.loader_s;
  p.images_per_s = batch * ranks / p.step_s;
  const double alone =
      ranks > 1 ? predict(step, loader, fabric, batch, 1).images_per_s : 0;
  p.efficiency = ranks > 1 ? p.images_per_s / (ranks * alone) : 1;
  const int per_node = std::min(ranks, fabric.gpus_per_node);
  p.loader_demand = decoded * per_node / p.step_s;
  p.storage_demand_gb_per_s =
      decoded * ranks * loader.bytes_per_image / p.step_s / 1e9;
  p.limit = "compute";
  double most = 0.02 * p.step_s;
  for (const auto& [name, seconds] :
       {std::pair{"all-reduce", p.exposed_s + p.interference_s},
        std::pair{"stragglers", p.straggler_s},
        std::pair{"coordination", p.coordination_s},
        std::pair{"loader", p.loader_s}})
    if (seconds > most) {
      most = seconds;
      p.limit = name;
    }
  return p;
}

}  // namespace chexnet
