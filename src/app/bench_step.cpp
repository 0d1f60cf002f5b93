// bench step: forward, loss, backward and optimizer on made-up images.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/philox.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/table.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/train/device.hpp"
#include "chexnet/train/step.hpp"

namespace chexnet {
namespace {

struct StepOptions {
  std::string model = "densenet121", precision = "auto", device = "auto", engine = "auto";
  std::string convolutions = "auto", compression = "none";
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

// Time by kind of layer over some further steps of this rank, beside what the machine can do; empty
// where ATen computes.
nlohmann::ordered_json layer_times(Network& network, const Device& device,
                                   const std::function<void()>& step) {
  constexpr int kSteps = 3;
  LayerTimes layer_times;
  network.set_layer_times(&layer_times);
  const double start = now_s();
  for (int i = 0; i < kSteps; ++i) step();
  const double seconds = now_s() - start;
  network.set_layer_times(nullptr);
  nlohmann::ordered_json json, layers = nlohmann::ordered_json::array();
  double known = 0;
  for (int k = 0; k < kPassKinds; ++k) {
    const auto& entry = layer_times.of(static_cast<PassKind>(k));
    if (entry.passes == 0) continue;
    known += entry.seconds;
    layers.push_back({{"layers", pass_name(static_cast<PassKind>(k))},
                      {"ms_per_step", 1e3 * entry.seconds / kSteps},
                      {"gflop_per_s", 1e-9 * entry.flops / entry.seconds},
                      {"gb_per_s", 1e-9 * entry.bytes / entry.seconds}});
  }
  if (layers.empty()) return json;
  layers.push_back({{"layers", "loss, statistics, optimizer"},
                    {"ms_per_step", 1e3 * (seconds - known) / kSteps},
                    {"gflop_per_s", 0.0},
                    {"gb_per_s", 0.0}});
  ThreadPool thread_pool(device.threads);
  const Ceilings ceilings =
      measure_ceilings(arithmetic_of(network.options().precision), thread_pool);
  json["layers"] = layers;
  json["ceilings"] = {{"fma_gflop_per_s", ceilings.gflops}, {"copy_gb_per_s", ceilings.gb_per_s}};
  return json;
}

std::string layer_table(const nlohmann::ordered_json& json) {
  const double flops = json["ceilings"]["fma_gflop_per_s"],
               bytes = json["ceilings"]["copy_gb_per_s"];
  Rows rows = {{"by kind of layer", "ms per step   GFLOP/s (of FMA peak)   GB/s (of copy)"}};
  const auto share = [](double value, double of, int width) {
    std::string text =
        value == 0 ? "-" : fixed(value, 1) + " (" + fixed(100 * value / of, 0) + " %)";
    return std::string(
               static_cast<std::size_t>(std::max<int>(0, width - static_cast<int>(text.size()))),
               ' ') +
           text;
  };
  for (const auto& layer : json["layers"]) {
    std::string ms = fixed(layer["ms_per_step"], 1);
    ms.insert(0, static_cast<std::size_t>(std::max<int>(0, 9 - static_cast<int>(ms.size()))), ' ');
    rows.emplace_back(layer["layers"], ms + share(layer["gflop_per_s"], flops, 24) +
                                           share(layer["gb_per_s"], bytes, 17));
  }
  rows.emplace_back("measured ceilings",
                    "FMA " + fixed(flops, 0) + " GFLOP/s, copy " + fixed(bytes, 1) + " GB/s");
  return aligned(rows) + "\n";
}

int bench_step(const StepOptions& options, Invocation& invocation) {
  LaunchConfig launch_config;
  launch_config.ranks = options.ranks;
  launch_config.threads = options.threads;
  launch_config.device = find_choice<DeviceKind>(options.device);
  RankWorld world = enter_world(launch_config, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  const Device device = choose_device(launch_config, world.comm());
  const auto comm = gradient_communicator(world.take_comm(), device, launch_config);
  constexpr std::int64_t kFindings = 14;
  Network network(
      network_spec(options.model), kFindings,
      {.device = device.where,
       .precision = resolve_precision(find_choice<Precision>(options.precision), device),
       .own_engine = find_choice<EngineKind>(options.engine) != EngineKind::kAten,
       .winograd = find_choice<ConvolutionKind>(options.convolutions) != ConvolutionKind::kDirect});
  network.parameters().initialize(1);
  const LossWeights weights{std::vector<double>(kFindings, 1.0),
                            std::vector<double>(kFindings, 1.0)};
  const auto compression = *find_choice<GradientCompression>(options.compression);

  const at::Tensor images = at::empty({options.batch, 1, options.size, options.size}, at::kByte),
                   labels = at::zeros({options.batch, kFindings}, at::kFloat);
  Random random(1, Purpose::kTest, static_cast<std::uint64_t>(comm->rank()));
  for (std::int64_t i = 0; i < images.numel(); ++i)
    images.data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(random.below(256));
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    labels.data_ptr<float>()[i] = random.chance(0.1) ? 1.0f : 0.0f;
  const double entries = static_cast<double>(options.batch * kFindings * comm->size());

  const TrainStep::Options step_options{TrainConfig{}, weights, options.bucket_mb, compression};
  TrainStep::Options silent_options = step_options;
  silent_options.communicate = false;
  TrainStep step(network, *comm, step_options), silent(network, *comm, silent_options);
  double cpu = 0, first_step_s = 0;
  std::vector<double> exposed_ms;  // of the all-reduce, by step
  std::vector<std::function<void()>> measured = {[&] {
    const double before = cpu_s();
    const TrainStep::Result result = step.run(images, labels, entries, 1e-4);
    cpu += cpu_s() - before;
    if (first_step_s == 0) first_step_s = process_age_s();
    // Early ranks also wait for late ones; what the latest waits is communication alone.
    double wait = -1e3 * result.allreduce_wait_s;
    comm->all_reduce(std::span(&wait, 1), ReduceOp::kMax);
    exposed_ms.push_back(-wait);
  }};
  if (comm->size() > 1) {
    measured.emplace_back([&] { silent.run(images, labels, entries, 1e-4); });
    measured.emplace_back([&] {
      step.reducer().begin();
      step.reducer().finish();
    });
  }
  const auto all = time_in_turn(measured, device, *comm, options.steps);
  const std::vector<double>& times = all[0];
  nlohmann::ordered_json json;
  if (comm->size() > 1) {
    // How much of the all-reduce backward hides.
    const double alone = quantile(all[2], 0.5), exposed = quantile(exposed_ms, 0.5);
    json["ms_per_step_without_communication"] = quantile(all[1], 0.5);
    json["ms_allreduce_alone"] = alone;
    json["ms_allreduce_exposed"] = exposed;
    json["hidden_fraction"] = std::clamp(1 - exposed / alone, 0.0, 1.0);
  }
  if (comm->rank() != 0) return 0;
  const double median = quantile(times, 0.5);
  json["model"] = options.model;
  json["batch"] = options.batch;
  json["size"] = options.size;
  json["precision"] = choice_name(network.options().precision);
  json["threads"] = device.threads;
  json["device"] = device.description;
  json["ranks"] = comm->size();
  json["images_per_s"] = 1e3 * static_cast<double>(options.batch * comm->size()) / median;
  json["ms_per_step"] = {
      {"median", median}, {"p10", quantile(times, 0.1)}, {"p90", quantile(times, 0.9)}};
  json["peak_bytes"] = device.cuda != nullptr ? device.cuda->peak_bytes() : peak_rss_bytes();
  json["first_step_s"] = first_step_s;
  json["cpu_s_per_step"] = cpu / (options.steps + 2);  // warm-up included
  json["engine"] = network.description(options.batch, options.size);
  const auto layers =
      layer_times(network, device, [&] { silent.run(images, labels, entries, 1e-4); });
  if (!layers.empty()) json.update(layers);
  if (options.json) {
    std::cout << json.dump() << std::endl;
    return 0;
  }
  std::cout << options.model << "  batch " << options.batch << " x " << comm->size() << " ranks  "
            << options.size << " px  " << choice_name(network.options().precision) << "  "
            << fixed(json["images_per_s"], 1) << " images/s  " << fixed(median, 1)
            << " ms per step  " << fixed(json["cpu_s_per_step"], 2) << " CPU s per step  peak "
            << readable_bytes(json["peak_bytes"].get<double>()) << "\n"
            << json["engine"].get<std::string>() << "\n";
  if (comm->size() > 1)
    std::cout << "all-reduce alone " << fixed(json["ms_allreduce_alone"], 1)
              << " ms, step without communication "
              << fixed(json["ms_per_step_without_communication"], 1) << " ms, hidden fraction "
              << fixed(100 * json["hidden_fraction"].get<double>(), 0) << " %\n";
  if (json.contains("layers")) std::cout << layer_table(json);
  return 0;
}

}  // namespace

void add_bench_step(CLI::App& bench, Invocation& invocation) {
  auto step = std::make_shared<StepOptions>();
  auto* step_command = bench.add_subcommand("step",
                                            "forward, loss, backward and optimizer on made-up "
                                            "images; with ranks also the cost of communication");
  step_command->add_option("--model", step->model, "network")->capture_default_str();
  step_command->add_option("--batch", step->batch, "images per rank")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  step_command->add_option("--size", step->size, "pixels")
      ->check(CLI::Range(32, 4096))
      ->capture_default_str();
  step_command->add_option("--precision", step->precision, "as train.precision")
      ->check(CLI::IsMember(names_or_auto<Precision>()))
      ->capture_default_str();
  step_command
      ->add_option("--engine", step->engine, "auto: our own on CPU; aten: LibTorch's operators")
      ->check(CLI::IsMember(choice_names<EngineKind>()))
      ->capture_default_str();
  step_command->add_option("--convolutions", step->convolutions, "as train.convolutions")
      ->check(CLI::IsMember(choice_names<ConvolutionKind>()))
      ->capture_default_str();
  step_command->add_option("--threads", step->threads, "compute threads per rank; 0 = its cores");
  add_device_option(*step_command, step->device);
  step_command->add_option("--steps", step->steps, "steps to time")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  step_command->add_option("--ranks", step->ranks, "ranks to start")->check(CLI::Range(1, 100000));
  step_command
      ->add_option("--gradient-compression", step->compression, "as launch.gradient_compression")
      ->check(CLI::IsMember(choice_names<GradientCompression>()))
      ->capture_default_str();
  step_command->add_option("--bucket-mb", step->bucket_mb, "gradient bucket, MB")
      ->check(CLI::Range(0.001, 10000.0));
  step_command->add_flag("--json", step->json, "one JSON object on stdout (docs/json.md)");
  step_command->callback([&invocation, step] {
    invocation.run = [&invocation, step] { return bench_step(*step, invocation); };
  });
}

}  // namespace chexnet
