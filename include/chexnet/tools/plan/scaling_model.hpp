// The cost of data-parallel training on N ranks, from a measured step of one
// rank and a description of the cluster. Pure. Seconds and bytes unless a name
// says otherwise.
#pragma once

#include <string>
#include <vector>

namespace chexnet {

// How ranks are connected.
struct Fabric {
  int gpus_per_node = 4;
  double intra_gb_per_s = 100;  // bus bandwidth of an all-reduce inside a host
  double inter_gb_per_s = 10;   // of a host's adapters together
  double intra_latency_us = 3, inter_latency_us = 6;
};
// Time of an all-reduce of `bytes`: ring, or between hosts also a double binary
// tree, whichever is shorter (the alpha-beta model; Thakur et al. 2005,
// NCCL 2.4).
double allreduce_s(double bytes, int ranks, const Fabric& fabric);

// Mean of the largest of `n` independent standard normal values.
double expected_largest_normal(int n);

struct StepCosts {
  double compute_s = 0;  // one rank's step alone: forward, backward, optimizer
  // Of compute_s; gradients become ready evenly over it.
  double backward_fraction = 0.64;
  double gradient_bytes = 0;  // on the wire
  double bucket_bytes = 4e6;
  double per_bucket_s = 15e-6;  // to start one all-reduce
  bool overlap = true;          // buckets travel while backward runs
  // Of the hidden communication time comes back as slower compute.
  double interference = 0.03;
  // Standard deviation of a rank's step, as a fraction of it.
  double jitter = 0.01;
  // Of a framework that agrees on tensors each step, from 2 ranks on.
  double coordination_s = 0;
};

// The input of a rank.
struct LoaderCosts {
  // A rank's loader threads can decode; 0 = not limiting.
  double images_per_s = 0;
  // The article's old pipeline: work grows with the ranks.
  bool every_rank_decodes_all = false;
  // Decoding slows the step down instead of hiding behind it.
  bool shares_cores = false;
  double storage_gb_per_s = 0;  // of all ranks together; 0 = not limiting
  double bytes_per_image = 0;   // read from storage
};

struct Prediction {
  int ranks = 1;
  double step_s = 0, images_per_s = 0, efficiency = 1;
  // The parts of a step's time beyond compute.
  double exposed_s = 0, interference_s = 0, straggler_s = 0, coordination_s = 0,
         loader_s = 0;
  double allreduce_s = 0;    // all of a step's, hidden or not
  double loader_demand = 0;  // images that a host must decode per second
  double storage_demand_gb_per_s = 0;  // of all hosts together
  std::string limit;                   // the largest of the above, or "compute"
};
// `batch`: images per rank.
Prediction predict(const StepCosts& step, const LoaderCosts& loader,
                   const Fabric& fabric, double batch, int ranks);

}  // namespace chexnet
