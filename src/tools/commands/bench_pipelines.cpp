// bench pipelines: Figure 3 of Dell's article, the old input pipeline against
// the new one on 1..N ranks, beside our own order. Loading only.
//
// The command without --mode is a parent: for each pipeline and number of ranks
// it starts itself under mpirun with --mode (run_ranks), and reads the JSON
// line that rank 0 prints. So each measurement has fresh processes and an empty
// ring.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/launch/child_process.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/launch/start_checks.hpp"
#include "chexnet/report/plot.hpp"

namespace chexnet {
namespace {

struct BenchPipelinesOptions {
  std::string shards, svg, mode;
  std::vector<int> ranks = {1, 2, 4};
  int resize = 256, crop = 224, batch = 32, workers = 1, steps = 12;
  bool json = false;
};

uint64_t batch_of(const BenchPipelinesOptions& options, int ranks) {
  return static_cast<uint64_t>(options.batch) * static_cast<uint64_t>(ranks);
}

// ConfigError: too few shards for so many ranks.
std::unique_ptr<Sampler> sampler_of(const BenchPipelinesOptions& options,
                                    const std::string& mode,
                                    const UnlabeledSet& set, int rank,
                                    int ranks) {
  DataConfig data;
  data.pipeline = *find_choice<PipelineKind>(mode);
  return training_sampler(
      data, set.source->index(), set.rows,
      {.batch = batch_of(options, ranks), .rank = rank, .world_size = ranks});
}

// One mode on the ranks of this world: all of them start together, take `steps`
// batches each, and rank 0 prints the result.
int run_ranks(const BenchPipelinesOptions& options, Invocation& invocation) {
  LaunchConfig launch_config;
  launch_config.device = DeviceKind::kCpu;
  launch_config.ranks = 1;
  const RankWorld world = enter_world(launch_config, invocation);
  Communicator& comm = world.comm();
  Stores stores;
  const UnlabeledSet set = all_images({options.shards}, stores);
  Augmentation augmentation;
  augmentation.crop = TrainCrop::kRandom;
  augmentation.flip = true;
  const ImageReader reader(
      *set.source, {options.resize, options.crop, ResizeKind::kAntialias},
      augmentation, 1);
  const auto sampler =
      sampler_of(options, options.mode, set, comm.rank(), comm.size());
  Loader loader(set.manifest, reader, *sampler,
                {options.batch, options.workers, 2});
  for (int i = 0; i < 4; ++i)
    loader.next();  // batches in the ring do not count
  comm.barrier();
  const double start = now_s(), cpu = cpu_s(), waited = loader.wait_s();
  for (int i = 0; i < options.steps; ++i) loader.next();
  const double seconds = now_s() - start, own_cpu = cpu_s() - cpu;
  double sums[] = {own_cpu, loader.wait_s() - waited}, longest[] = {seconds};
  comm.all_reduce(sums, ReduceOp::kSum);
  comm.all_reduce(longest, ReduceOp::kMax);
  if (comm.rank() != 0) return 0;
  const double images = static_cast<double>(options.steps) *
                        static_cast<double>(batch_of(options, comm.size()));
  std::cout << Json{{"pipeline", options.mode},
                    {"ranks", comm.size()},
                    {"images_per_s", images / longest[0]},
                    {"wait_fraction", sums[1] / (longest[0] * comm.size())},
                    {"cpu_s_per_image", sums[0] / images}}
                   .dump()
            << std::endl;
  return 0;
}

constexpr std::array<const char*, 3> kModes = {"old", "new", "global"};

// Before minutes are measured for nothing.
void check_shards(const BenchPipelinesOptions& options) {
  Stores stores;
  const UnlabeledSet set = all_images({options.shards}, stores);
  for (const char* mode : kModes)
    sampler_of(options, mode, set, 0, std::ranges::max(options.ranks));
}

int run(const BenchPipelinesOptions& options, Invocation& invocation) {
  if (!options.mode.empty()) return run_ranks(options, invocation);
  check_shards(options);
  Json results = nlohmann::json::array();
  Plot rate{.title = "Images/s by ranks: old and new pipeline",
            .x_label = "ranks",
            .y_label = "images/s",
            .curves = {},
            .from_zero = true};
  Plot cpu{.title = "CPU milliseconds per trained image by ranks",
           .x_label = "ranks",
           .y_label = "ms",
           .curves = {},
           .from_zero = true};
  Progress progress(true);
  if (!options.json)
    std::cout
        << "pipeline  ranks  images/s  waiting  CPU ms per trained image\n";
  for (const std::string mode : kModes) {
    Curve images{mode, {}, {}};
    Curve work = images;
    for (const int ranks : options.ranks) {
      progress.show("pipeline " + mode + " on " + counted(ranks, "rank"));
      std::vector<std::string> arguments = {
          "bench", "pipelines", "--shards", options.shards, "--mode", mode};
      const auto pass_on = [&](const char* name, const auto& value) {
        arguments.insert(arguments.end(), {name, std::to_string(value)});
      };
      pass_on("--resize", options.resize);
      pass_on("--crop", options.crop);
      pass_on("--batch", options.batch);
      pass_on("--workers", options.workers);
      pass_on("--steps", options.steps);
      SelfLaunch launch;
      launch.mpirun = rank_starter(find_mpirun({}), {});
      launch.layout = {ranks, 1, ranks};
      launch.oversubscribe = static_cast<size_t>(ranks) > allowed_cpus().size();
      launch.as_root = geteuid() == 0;
      launch.program = invocation.program;
      launch.arguments = arguments;
      const ChildOutput child = output_of(start_command(launch));
      const auto json = Json::parse(child.output, nullptr, false);
      if (child.exit_code != 0 || json.is_discarded())
        throw DeviceError(
            "[bench] mode {} on {} ranks ended with exit code {}. Hint: see "
            "the message above",
            mode, ranks, child.exit_code);
      images.points.emplace_back(ranks, json["images_per_s"].get<double>());
      work.points.emplace_back(ranks,
                               1e3 * json["cpu_s_per_image"].get<double>());
      if (!options.json) {
        progress.clear();
        std::cout << mode << std::string(10 - mode.size(), ' ') << ranks
                  << "      " << fixed(json["images_per_s"], 1) << "     "
                  << fixed(100 * json["wait_fraction"].get<double>(), 0)
                  << " %     "
                  << fixed(1e3 * json["cpu_s_per_image"].get<double>(), 2)
                  << std::endl;
      }
      results.push_back(json);
    }
    rate.curves.push_back(std::move(images));
    cpu.curves.push_back(std::move(work));
  }
  progress.clear();
  if (!options.svg.empty())
    write_in_time(timeout_of_start({}), options.svg, svg_plot(rate) + "\n",
                  "--svg");
  if (!options.svg.empty())
    write_in_time(timeout_of_start({}),
                  options.svg.substr(0, options.svg.rfind(".svg")) + "-cpu.svg",
                  svg_plot(cpu) + "\n", "--svg");
  if (options.json) std::cout << Json{{"results", results}}.dump() << std::endl;
  return 0;
}

}  // namespace

void add_bench_pipelines(CLI::App& bench, Invocation& invocation) {
  auto options = std::make_shared<BenchPipelinesOptions>();
  auto* command =
      bench.add_subcommand("pipelines",
                           "the old and new input pipelines of Dell's article "
                           "and ours, on growing numbers of ranks");
  command
      ->add_option("--shards", options->shards,
                   "folder of TFRecord shards (pack --format tfrecord)")
      ->required();
  command
      ->add_option("--ranks", options->ranks,
                   "comma-separated numbers of ranks")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  add_picture_options(*command, options->resize, options->crop, options->batch);
  command->add_option("--workers", options->workers, "loader threads per rank")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "batches to time per rank")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option(
          "--svg", options->svg,
          "write the curves to NAME.svg (images/s) and NAME-cpu.svg (CPU time)")
      ->check(in_file_system());
  command->add_option("--mode", options->mode, "run this one mode as a rank")
      ->check(CLI::IsMember(choice_names<PipelineKind>()))
      ->group("");
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
