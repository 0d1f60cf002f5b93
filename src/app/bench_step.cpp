// bench step: forward, loss, backward and optimiser on made-up images.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/resources.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {
namespace {

struct StepOptions {
  std::string model = "densenet121", precision = "auto", device = "auto", wire = "fp32";
  std::int64_t batch = 16, size = 224, threads = 0;
  int steps = 10, ranks = 1;
  double bucket_mb = 4;
  bool json = false;
};

// Runs each of `steps` once a round, in turn, and returns their times in ms: [step][round]. A noisy
// machine then disturbs all of them alike. Ranks start each measurement together.
std::vector<std::vector<double>> time_in_turn(const std::vector<std::function<void()>>& steps,
                                              const Device& device, Communicator& comm,
                                              int rounds) {
  std::vector<std::vector<double>> times(steps.size());
  for (int round = -2; round < rounds; ++round) {  // two to warm up
    for (std::size_t i = 0; i < steps.size(); ++i) {
      comm.barrier();
      const double start = now_s();
      steps[i]();
      if (device.cuda != nullptr) device.cuda->synchronize();
      if (round >= 0) times[i].push_back(1e3 * (now_s() - start));
    }
  }
  return times;
}

int bench_step(const StepOptions& options, Invocation& invocation) {
  LaunchConfig launch_config;
  launch_config.ranks = options.ranks;
  launch_config.threads = options.threads;
  launch_config.device = options.device;
  Launch launch = enter_world(launch_config, invocation);
  if (launch.comm == nullptr) return launch.parent_exit_code;
  const Device device = choose_device(launch_config, *launch.comm);
  const auto comm = gradient_communicator(std::move(launch.comm), device, launch_config);
  constexpr std::int64_t kFindings = 14;
  Network network(
      network_spec(options.model), kFindings,
      {.device = device.where, .precision = resolve_precision(options.precision, device)});
  network.parameters().initialize(1);
  const LossWeights weights{std::vector<double>(kFindings, 1.0),
                            std::vector<double>(kFindings, 1.0)};
  const Wire wire = wire_of(options.wire);

  const at::Tensor images = at::empty({options.batch, 1, options.size, options.size}, at::kByte),
                   labels = at::zeros({options.batch, kFindings}, at::kFloat);
  Random random(1, Purpose::kTest, static_cast<std::uint64_t>(comm->rank()));
  for (std::int64_t i = 0; i < images.numel(); ++i)
    images.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(random.below(256));
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    labels.data_ptr<float>()[i] = random.chance(0.1) ? 1.0f : 0.0f;
  const double cells = static_cast<double>(options.batch * kFindings * comm->size());

  const TrainStep::Options step_options{TrainConfig{}, weights, options.bucket_mb, wire};
  TrainStep::Options silent_options = step_options;
  silent_options.communicate = false;
  TrainStep step(network, *comm, step_options), silent(network, *comm, silent_options);
  double cpu = 0;
  std::vector<std::function<void()>> measured = {[&] {
    const double before = cpu_s();
    step.run(images, labels, cells, 1e-4);
    cpu += cpu_s() - before;
  }};
  if (comm->size() > 1) {
    measured.emplace_back([&] { silent.run(images, labels, cells, 1e-4); });
    measured.emplace_back([&] {
      step.reducer().begin();
      step.reducer().finish();
    });
  }
  const auto all = time_in_turn(measured, device, *comm, options.steps);
  const std::vector<double>& times = all[0];
  nlohmann::ordered_json json;
  if (comm->size() > 1) {
    // What communication costs, and how much of it backward hides: 1 - (with - without) /
    // all-reduce alone.
    const double without = quantile(all[1], 0.5), alone = quantile(all[2], 0.5);
    json["ms_per_step_without_communication"] = without;
    json["ms_allreduce_alone"] = alone;
    json["hidden_share"] = std::clamp(1 - (quantile(times, 0.5) - without) / alone, 0.0, 1.0);
  }
  invocation.abort = nullptr;
  if (comm->rank() != 0) return 0;
  const double median = quantile(times, 0.5);
  json["model"] = options.model;
  json["batch"] = options.batch;
  json["size"] = options.size;
  json["precision"] = precision_name(network.options().precision);
  json["threads"] = device.threads;
  json["device"] = device.description;
  json["ranks"] = comm->size();
  json["images_per_s"] = 1e3 * static_cast<double>(options.batch * comm->size()) / median;
  json["ms_per_step"] = {
      {"median", median}, {"p10", quantile(times, 0.1)}, {"p90", quantile(times, 0.9)}};
  json["peak_bytes"] = device.cuda != nullptr ? device.cuda->peak_bytes() : peak_rss_bytes();
  json["cpu_s_per_step"] = cpu / (options.steps + 2);  // warm-up included
  if (options.json) {
    std::cout << json.dump() << std::endl;
    return 0;
  }
  std::cout << options.model << "  batch " << options.batch << " x " << comm->size() << " ranks  "
            << options.size << " px  " << precision_name(network.options().precision) << "  "
            << fixed(json["images_per_s"], 1) << " images/s  " << fixed(median, 1) << " ms a step  "
            << fixed(json["cpu_s_per_step"], 2) << " CPU s a step  peak "
            << readable_bytes(json["peak_bytes"].get<double>()) << "\n";
  if (comm->size() > 1)
    std::cout << "all-reduce alone " << fixed(json["ms_allreduce_alone"], 1)
              << " ms, step without communication "
              << fixed(json["ms_per_step_without_communication"], 1) << " ms, hidden share "
              << fixed(100 * json["hidden_share"].get<double>(), 0) << " %\n";
  return 0;
}

}  // namespace

void add_bench_step(CLI::App& bench, Invocation& invocation) {
  auto step = std::make_shared<StepOptions>();
  auto* step_command = bench.add_subcommand("step",
                                            "forward, loss, backward and optimiser on made-up "
                                            "images; with ranks also the cost of communication");
  step_command->add_option("--model", step->model, "network")->capture_default_str();
  step_command->add_option("--batch", step->batch, "images a rank")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  step_command->add_option("--size", step->size, "pixels")
      ->check(CLI::Range(32, 4096))
      ->capture_default_str();
  step_command->add_option("--precision", step->precision, "auto, fp64, fp32, bf16 or fp16")
      ->capture_default_str();
  step_command->add_option("--threads", step->threads, "compute threads a rank; 0 = its cores");
  step_command->add_option("--device", step->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  step_command->add_option("--steps", step->steps, "steps to time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  step_command->add_option("--ranks", step->ranks, "ranks to start")->check(CLI::Range(1, 100000));
  step_command->add_option("--wire", step->wire, "gradients on the network: fp32, fp16 or bf16")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
  step_command->add_option("--bucket-mb", step->bucket_mb, "gradient bucket, MB")
      ->check(CLI::Range(0.001, 10000.0));
  step_command->add_flag("--json", step->json, "one JSON object on stdout (docs/json.md)");
  step_command->callback([&invocation, step] {
    invocation.run = [&invocation, step] { return bench_step(*step, invocation); };
  });
}

}  // namespace chexnet
