// bench scaling: the cost of training on 1 to 4096 GPUs of a cluster.
#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/config.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_table.hpp"
#include "chexnet/model/network.hpp"
#include "chexnet/report/plot.hpp"
#include "chexnet/tools/plan/cluster_file.hpp"
#include "chexnet/tools/plan/known_gpus.hpp"

namespace chexnet {
namespace {

// The network of the known GPUs' rates, and the default.
constexpr const char* kUsualModel = "densenet121";

struct ScalingOptions {
  std::string cluster, rate, model, measured, svg;
  std::vector<int> ranks;
  double batch = 0, images = 86524, epochs = 10;
  bool json = false;
};

// Of one rank alone.
struct Rate {
  double images_per_s = 0;
  const KnownGpu* gpu = nullptr;  // that it was computed for
};

// NaN is in no range.
void require_range(const char* option, double value, double least,
                   double most) {
  if (value >= least && value <= most) return;
  throw ConfigError("[bench] --{} {} is out of range. Hint: between {} and {}",
                    option, number_text(value), number_text(least),
                    number_text(most));
}

constexpr double kLeastRate = 1e-6, kMost = 1e9;

// The rate from the output of `bench step --json`; model and batch are its,
// too.
double read_bench(const std::string& path, ScalingOptions& options) {
  const auto json = nlohmann::json::parse(read_text(path), nullptr, false);
  const auto is_number = [&](const char* key) {
    return json.contains(key) && json[key].is_number();
  };
  const bool is_of_one_rank =
      json.contains("ranks") && json["ranks"] == nlohmann::json(1);
  const bool has_model = json.contains("model") && json["model"].is_string();
  if (json.is_discarded() || !is_number("images_per_s") ||
      !is_number("batch") || !has_model || !is_of_one_rank)
    throw ConfigError(
        "[bench] --rate {}: no measurement of one rank. Hint: chexnet-train "
        "bench step --json > step.json, and --rate step.json",
        path);
  const std::string model = json["model"];
  if (!options.model.empty() && options.model != model)
    throw ConfigError(
        "[bench] --rate {} is of {}. Hint: leave --model {} out, or measure "
        "that network",
        path, model, options.model);
  options.model = model;
  const double rate = json["images_per_s"], batch = json["batch"];
  require_range("rate", rate, kLeastRate, kMost);
  require_range("batch", batch, 1, 1e6);
  if (options.batch == 0) options.batch = batch;
  return rate;
}

// The results of scripts/bench/scaling: images/s by ranks. Its model and batch
// are taken over, and the rate of one rank unless --rate gives it.
std::map<int, double> read_measured(ScalingOptions& options) {
  const auto json =
      nlohmann::json::parse(read_text(options.measured), nullptr, false);
  std::map<int, double> measured;
  try {
    options.model = json.at("model").get<std::string>();
    options.batch = json.at("batch").get<double>();
    for (const auto& point : json.at("results")) {
      const double ranks = point.at("ranks").get<double>(),
                   rate = point.at("images_per_s").get<double>();
      require_range("measured: ranks", ranks, 1, 1'000'000);
      require_range("measured: images_per_s", rate, kLeastRate, kMost);
      if (ranks != std::floor(ranks) ||
          !measured.emplace(static_cast<int>(ranks), rate).second)
        throw ConfigError(
            "[bench] --measured {}: {} ranks, no whole number or twice. Hint: "
            "scripts/bench/scaling --ranks writes one",
            options.measured, number_text(ranks));
    }
    json.at("results").at(0);
  } catch (const nlohmann::json::exception&) {
    throw ConfigError(
        "[bench] --measured {}: no measurement. Hint: scripts/bench/scaling "
        "writes one",
        options.measured);
  }
  require_range("measured: batch", options.batch, 1, 1e6);
  if (options.rate.empty() && measured.contains(1))
    options.rate = number_text(measured[1]);
  return measured;
}

std::vector<int> ranks_of(const std::map<int, double>& measured) {
  if (measured.empty())
    return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<int> ranks;
  for (const auto& [number, rate] : measured) ranks.push_back(number);
  return ranks;
}

struct Row {
  Prediction predicted;
  double without_overlap = 0;  // images/s
  double hours = 0;
  double measured = 0;  // images/s; 0: not
};

Json json_of(const Row& row) {
  const Prediction& p = row.predicted;
  Json json = {{"ranks", p.ranks},
               {"images_per_s", p.images_per_s},
               {"images_per_s_without_overlap", row.without_overlap},
               {"efficiency", p.efficiency},
               {"ms_per_step", 1e3 * p.step_s},
               {"allreduce_ms", 1e3 * p.allreduce_s},
               {"lost_ms",
                {{"all-reduce", 1e3 * (p.exposed_s + p.interference_s)},
                 {"stragglers", 1e3 * p.straggler_s},
                 {"coordination", 1e3 * p.coordination_s},
                 {"loader", 1e3 * p.loader_s}}},
               {"limit", p.limit},
               {"hours", row.hours},
               {"loader_images_per_s_per_host", p.loader_demand},
               {"storage_gb_per_s", p.storage_demand_gb_per_s}};
  if (row.measured > 0) json["measured_images_per_s"] = row.measured;
  return json;
}

std::string table_of(const std::vector<Row>& rows, bool has_measured) {
  std::vector<std::vector<std::string>> lines = {
      {"GPUs", "images/s", "no overlap", "efficiency", "ms per step",
       "lost to: all-reduce", "stragglers", "coordination", "loader", "hours",
       "decode/s per host", "storage GB/s"}};
  if (has_measured)
    lines[0].insert(lines[0].begin() + 2, {"measured", "of that"});
  for (const Row& row : rows) {
    const Prediction& p = row.predicted;
    auto& line = lines.emplace_back(std::vector<std::string>{
        std::to_string(p.ranks), fixed(p.images_per_s, 1),
        fixed(row.without_overlap, 1), fixed(100 * p.efficiency, 1) + " %",
        fixed(1e3 * p.step_s, 1),
        fixed(1e3 * (p.exposed_s + p.interference_s), 2),
        fixed(1e3 * p.straggler_s, 2), fixed(1e3 * p.coordination_s, 1),
        fixed(1e3 * p.loader_s, 1), fixed(row.hours, 2),
        fixed(p.loader_demand, 0), fixed(p.storage_demand_gb_per_s, 2)});
    if (!has_measured) continue;
    const bool known = row.measured > 0;
    line.insert(
        line.begin() + 2,
        {known ? fixed(row.measured, 1) : "-",
         known ? fixed(100 * row.measured / p.images_per_s, 1) + " %" : "-"});
  }
  return columns(lines);
}

// Fig. 3 of Dell's article: images/s over ranks, on straight axes.
void draw(const std::string& path, const std::string& name,
          const std::vector<Row>& rows) {
  Plot plot{.title = name + ": images/s by ranks",
            .x_label = "ranks",
            .y_label = "images/s",
            .curves = {{"every rank as fast as one alone", {}, {}},
                       {"predicted", {}, {}}},
            .x_from_zero = true,
            .from_zero = true};
  Curve measured{"measured", {}, {}};
  for (const Row& row : rows) {
    const Prediction& p = row.predicted;
    plot.curves[0].points.emplace_back(p.ranks, p.images_per_s / p.efficiency);
    plot.curves[1].points.emplace_back(p.ranks, p.images_per_s);
    if (row.measured > 0) measured.points.emplace_back(p.ranks, row.measured);
  }
  if (!measured.points.empty()) plot.curves.push_back(std::move(measured));
  write_in_time(timeout_of_start({}), path, svg_plot(plot) + "\n", "--svg");
}

// Also what the cluster file left out and is assumed.
std::string links_text(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  return counted(fabric.gpus_per_node, "GPU") + " per host; links " +
         number_text(fabric.intra_gb_per_s) + " GB/s and " +
         fixed(fabric.intra_latency_us, 1) + " us inside a host, " +
         number_text(fabric.inter_gb_per_s) + " GB/s and " +
         fixed(fabric.inter_latency_us, 1) + " us between hosts; jitter " +
         fixed(100 * cluster.jitter, 1) + " %";
}

std::string basis_text(const KnownGpu& gpu) {
  return " (computed, not measured: " + fixed(gpu.memory_gb_per_s, 0) +
         " GB/s, " + std::string(gpu.source) + ")";
}

void check(const ScalingOptions& options) {
  require_range("images", options.images, 1, 1e12);
  require_range("epochs", options.epochs, 0, kMost);
  for (const int ranks : options.ranks)
    require_range("ranks", ranks, 1, 1'000'000);
  // 0: not given.
  if (options.batch != 0) require_range("batch", options.batch, 1, 1e6);
}

// --rate: a number, a file that is there, or a GPU; else as the cluster says.
Rate rate_of(const Cluster& cluster, ScalingOptions& options) {
  if (options.rate.empty()) return {cluster.images_per_s};
  double number = 0;
  if (CLI::detail::lexical_cast(options.rate, number)) {
    require_range("rate", number, kLeastRate, kMost);
    return {number};
  }
  std::error_code error;
  if (std::filesystem::exists(options.rate, error))
    return {read_bench(options.rate, options)};
  const KnownGpu& gpu = known_gpu(options.rate);
  if (!options.model.empty() && options.model != kUsualModel)
    throw ConfigError(
        "[bench] the rates of known GPUs are of {}. Hint: --rate FILE of a "
        "`bench step --model {} --json`",
        kUsualModel, options.model);
  return {gpu.images_per_s, &gpu};
}

StepCosts step_costs(const Cluster& cluster, const ScalingOptions& options,
                     double images_per_s) {
  StepCosts step;
  step.compute_s = options.batch / images_per_s;
  constexpr int64_t kFindings = 14;
  step.gradient_bytes =
      cluster.gradient_bytes *
      static_cast<double>(Network(network_spec(options.model), kFindings, {})
                              .parameters()
                              .size());
  step.bucket_bytes =
      *LaunchConfig{}.bucket_mb * 1e6 * cluster.gradient_bytes / 4;
  step.jitter = cluster.jitter;
  step.overlap = cluster.overlap;
  step.coordination_s = 1e-3 * cluster.coordination_ms;
  return step;
}

int run(ScalingOptions options) {
  check(options);
  const Cluster cluster = read_cluster(options.cluster);
  std::map<int, double> measured;
  if (!options.measured.empty()) measured = read_measured(options);
  if (options.ranks.empty()) options.ranks = ranks_of(measured);
  const Rate rate = rate_of(cluster, options);
  if (options.model.empty()) options.model = kUsualModel;
  if (options.batch == 0)
    options.batch = cluster.batch > 0 ? cluster.batch : 64;
  if (rate.images_per_s <= 0)
    throw ConfigError(
        "[bench] the rate of one rank is not known. Hint: --rate FILE (of "
        "`bench step --json`), NUMBER (images/s), or one of {}",
        known_gpu_names());
  // One rank's part, so that any number of ranks can have it.
  if (options.batch < 1 || options.batch != std::floor(options.batch))
    throw ConfigError(
        "[bench] batch = {} cannot be a rank's part of train.batch. Hint: a "
        "whole number of images",
        fixed(options.batch, 2));
  const StepCosts step = step_costs(cluster, options, rate.images_per_s);
  StepCosts plain = step;
  plain.overlap = false;

  std::vector<Row> rows;
  for (const int ranks : options.ranks) {
    const auto predicted = [&](const StepCosts& costs) {
      return predict(costs, cluster.loader, cluster.fabric, options.batch,
                     ranks);
    };
    const Prediction p = predicted(step);
    rows.push_back({p, predicted(plain).images_per_s,
                    options.images * options.epochs / p.images_per_s / 3600,
                    measured.contains(ranks) ? measured[ranks] : 0});
  }
  if (!options.svg.empty()) draw(options.svg, cluster.name, rows);
  if (options.json) {
    Json results = Json::array();
    for (const Row& row : rows) results.push_back(json_of(row));
    std::cout << json_text(Json({{"cluster", cluster.name},
                                 {"model", options.model},
                                 {"batch", options.batch},
                                 {"images_per_s_of_one", rate.images_per_s},
                                 {"gradient_bytes", step.gradient_bytes},
                                 {"results", results}}))
              << std::endl;
    return 0;
  }
  std::cout << cluster.name << ": " << options.model << ", batch "
            << fixed(options.batch, 0) << " a GPU, "
            << fixed(rate.images_per_s, 1) << " images/s on one"
            << (rate.gpu == nullptr ? "" : basis_text(*rate.gpu))
            << ", gradients " << readable_bytes(step.gradient_bytes)
            << "; hours for " << fixed(options.epochs, 0) << " epochs of "
            << fixed(options.images, 0) << " images; losses in ms per step\n"
            << links_text(cluster) << "\n"
            << table_of(rows, !measured.empty()) << std::flush;
  return 0;
}

}  // namespace

void add_bench_scaling(CLI::App& bench, Invocation& invocation) {
  auto* command = bench.add_subcommand(
      "scaling",
      "predict images/s, efficiency and hours on 1 to 4096 GPUs of a cluster");
  auto options = std::make_shared<ScalingOptions>();
  command
      ->add_option("cluster", options->cluster,
                   "YAML file, see configs/clusters")
      ->required();
  command->add_option("--rate", options->rate,
                      "of one rank alone: a file of `bench step --json`, "
                      "images/s, or a GPU whose rate is computed of the "
                      "vendor's figures: " +
                          known_gpu_names());
  command->add_option("--batch", options->batch, "images per rank");
  command->add_option("--model", options->model,
                      "network (default: densenet121, or the rate file's)");
  command->add_option("--ranks", options->ranks, "GPU counts, e.g. 1,4,16")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--images", options->images, "images per epoch")
      ->capture_default_str();
  command->add_option("--epochs", options->epochs, "epochs")
      ->capture_default_str();
  command
      ->add_option("--measured", options->measured,
                   "what scripts/bench/scaling wrote: shown beside the "
                   "prediction, which starts from its rate of one rank")
      ->excludes("--batch")
      ->excludes("--model");
  command
      ->add_option("--svg", options->svg, "write the curves to this SVG file")
      ->check(in_file_system());
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [options] { return run(*options); };
  });
}

}  // namespace chexnet
