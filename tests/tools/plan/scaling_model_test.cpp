#include "chexnet/tools/plan/scaling_model.hpp"

#include <cmath>
#include <numbers>

#include "chexnet/core/error.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/tools/plan/cluster_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

namespace {

double normal(Random& random) {
  const double u = 1 - random.uniform(), v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Plays steps of all ranks, each with its own pace; a bucket's all-reduce
// begins when every rank has its gradients and the one before is done; hop by
// hop for a ring. Returns the mean step.
double played_step_s(const StepCosts& step, const Fabric& fabric, int ranks,
                     int rounds) {
  Random random(5, Purpose::kTest, static_cast<uint64_t>(ranks));
  const int buckets =
      static_cast<int>(std::ceil(step.gradient_bytes / step.bucket_bytes));
  const double bytes = step.gradient_bytes / buckets;
  double total = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> pace;
    for (int r = 0; r < ranks; ++r)
      pace.push_back(1 + step.jitter * normal(random));
    double network = 0, end = 0;
    for (int b = 1; b <= buckets; ++b) {
      double ready = 0;
      for (const double p : pace)
        ready = std::max(ready, p * step.compute_s *
                                    (1 - step.backward_fraction +
                                     step.backward_fraction * b / buckets));
      network = std::max(network, ready) + step.per_bucket_s;
      // Reduce-scatter and all-gather: 2 (N - 1) hops of a piece each, the
      // slowest link sets the pace; or the tree when that is shorter.
      double ring = 0;
      for (int hop = 0; hop < 2 * (ranks - 1); ++hop) {
        const bool leaves = ranks > fabric.gpus_per_node;
        const double slowest = 1e9 * (leaves ? std::min(fabric.intra_gb_per_s,
                                                        fabric.inter_gb_per_s)
                                             : fabric.intra_gb_per_s);
        const double latency = leaves && hop % fabric.gpus_per_node == 0
                                   ? fabric.inter_latency_us
                                   : fabric.intra_latency_us;
        ring += bytes / ranks / slowest + 1e-6 * latency;
      }
      network += std::min(ring, allreduce_s(bytes, ranks, fabric) * 1.02);
      end = network;
    }
    total += end;
  }
  return total / rounds;
}

}  // namespace

TEST_CASE("the largest of n normal values") {
  // Exact values for 2 and 3 (David and Nagaraja, Order Statistics); 256 from
  // tables.
  CHECK(expected_largest_normal(1) == 0);
  CHECK(expected_largest_normal(2) ==
        Approx(1 / std::sqrt(std::numbers::pi)).epsilon(1e-6));
  CHECK(expected_largest_normal(3) ==
        Approx(1.5 / std::sqrt(std::numbers::pi)).epsilon(1e-6));
  CHECK(expected_largest_normal(256) == Approx(2.83).epsilon(0.005));
}

TEST_CASE("the prediction agrees with played steps") {
  StepCosts step;
  step.gradient_bytes = 14e6;
  step.bucket_bytes = 2e6;
  step.interference = 0;  // not played
  for (const Fabric& fabric :
       {Fabric{4, 120, 11, 3, 6}, Fabric{8, 400, 360, 3, 6},
        Fabric{4, 120, 1.1, 3, 40}})
    for (const double compute : {0.064, 0.010})
      for (const int ranks : {2, 4, 8, 16, 64, 256}) {
        step.compute_s = compute;
        const double predicted = predict(step, {}, fabric, 64, ranks).step_s;
        const double played = played_step_s(step, fabric, ranks, 400);
        INFO(ranks << " ranks, compute " << compute << ", inter "
                   << fabric.inter_gb_per_s);
        CHECK(predicted == Approx(played).epsilon(0.03));
      }
}

TEST_CASE(
    "overlap hides what fits behind backward, and the loader limits what it "
    "cannot feed") {
  StepCosts step;
  step.compute_s = 0.1;
  step.gradient_bytes = 28e6;
  step.jitter = 0;
  const Fabric fabric;
  const auto with = predict(step, {}, fabric, 64, 16);
  step.overlap = false;
  const auto without = predict(step, {}, fabric, 64, 16);
  CHECK(with.exposed_s < without.exposed_s / 5);
  CHECK(with.efficiency > without.efficiency);
  CHECK(without.efficiency == Approx(0.1 / without.step_s));

  LoaderCosts loader;
  loader.images_per_s = 320;
  const auto starved = predict(step, loader, fabric, 64, 4);
  CHECK(starved.images_per_s == Approx(4 * 320));
  CHECK(starved.limit == "loader");
  loader = {};
  loader.storage_gb_per_s = 0.4;
  loader.bytes_per_image = 4e5;
  CHECK(predict(step, loader, fabric, 64, 16).images_per_s == Approx(1000));
}

TEST_CASE("DenseNet-121 on 256 GPUs with 1 % jitter keeps 96 %") {
  StepCosts step;
  step.gradient_bytes = 2 * 6.97e6;
  step.bucket_bytes = 2e6;
  for (const double images_per_s :
       {5420.0, 7760.0}) {  // H100, H200 (docs/cluster.md)
    step.compute_s = 128 / images_per_s;
    CHECK(predict(step, {}, {8, 400, 360, 3, 6}, 128, 256).efficiency > 0.96);
  }
}

TEST_CASE("a cluster has a number of GPUs that can be, and a real network") {
  const ScratchFolder folder;
  for (const char* text :
       {"gpus_per_node: 1e300", "gpus_per_node: inf", "gpus_per_node: 0.5",
        "inter_gb_per_s: inf", "jitter: nan", "# nothing\n"}) {
    CAPTURE(text);
    CHECK_FALSE(error_of<ConfigError>([&] {
                  read_cluster(folder.write("c.yaml", text));
                }).empty());
  }
}

TEST_CASE("Dell's measured curve of 1 to 16 GPUs") {
  const Cluster dell =
      read_cluster(source_file("configs/clusters/dell_article_2019.yaml"));
  StepCosts step;
  step.compute_s = dell.batch / dell.images_per_s;
  step.gradient_bytes = 4 * 6.97e6;
  step.overlap = dell.overlap;
  step.jitter = dell.jitter;
  step.coordination_s = 1e-3 * dell.coordination_ms;
  for (const auto& [ranks, measured] : {std::pair{1, 185.12},
                                        {2, 315.26},
                                        {3, 421.85},
                                        {4, 589.36},
                                        {8, 1116.99},
                                        {12, 1527.60},
                                        {16, 1912.82}}) {
    INFO(ranks << " GPUs");
    CHECK(predict(step, dell.loader, dell.fabric, dell.batch, ranks)
              .images_per_s == Approx(measured).epsilon(0.05));
  }
}
