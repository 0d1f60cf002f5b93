// bench loader: images/s over growing numbers of workers, for each source or as
// a config reads and changes its training images, with the knee: the fewest
// workers whose rate no larger number beats by more than 5 %. More of them
// would only take cores from computing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/comm/communicator.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/median.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/process_usage.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/data/pipeline.hpp"
#include "chexnet/report/plot.hpp"
#include "chexnet/train/run/dataset.hpp"

namespace chexnet {
namespace {

struct BenchLoaderOptions {
  std::vector<std::string> images, files, set;
  int resize = 256, crop = 224, batch = 32, count = 512, rounds = 3;
  std::string svg;
  std::vector<int> workers = {0, 1, 2, 4, 6, 8};
  bool json = false;
};

struct Measured {
  double images_per_s = 0, images_per_cpu_s = 0, wait_fraction = 0;
};

// The images to load, and how, but for the number of workers.
struct Source {
  std::string name;
  size_t images;
  const Manifest& manifest;
  const ImageReader& reader;
  const Sampler& sampler;
  Loader::Options loader;
};

// Medians over the rounds, each of `count` images in a fresh order.
Measured measure(const Source& source, const BenchLoaderOptions& options,
                 int workers) {
  Loader::Options with_workers = source.loader;
  with_workers.workers = workers;
  Loader loader(source.manifest, source.reader, source.sampler, with_workers);
  // Several times what is under way: batches made before the clock started must
  // not be most of those that count.
  const int under_way =
      source.loader.prefetch.value_or(kMostPrefetch) + workers;
  const int batches = std::max(options.count / options.batch, 4 * under_way);
  // Fills the page cache and starts the workers. Takes ready batches of the
  // ring before the clock starts, or they would count as work of the round.
  for (int b = 0; b < std::max(4, batches); ++b) loader.next();
  std::vector<double> rate, per_cpu, wait;
  for (int round = 0; round < options.rounds; ++round) {
    const double start = now_s(), cpu = cpu_s(), waited = loader.wait_s();
    int damaged = 0;
    for (int b = 0; b < batches; ++b) damaged += loader.next().damaged;
    if (damaged > 0)
      throw DataError(
          "[bench] {} of {} loads met an image that cannot be decoded. Hint: "
          "bench measures whole images only; chexnet-train inspect names the "
          "others",
          damaged, batches * options.batch);
    const double seconds = now_s() - start,
                 images = static_cast<double>(batches * options.batch);
    rate.push_back(images / seconds);
    per_cpu.push_back(images / (cpu_s() - cpu));
    wait.push_back((loader.wait_s() - waited) / seconds);
  }
  return {quantile(rate, 0.5), quantile(per_cpu, 0.5), quantile(wait, 0.5)};
}

// Measures one source, prints its table, and adds it to `sources` and `plot`.
void add_source(const Source& source, const BenchLoaderOptions& options,
                Json& sources, Plot& plot) {
  Progress progress(true);
  Json results = Json::array();
  Curve curve{source.name, {}, {}};
  size_t knee = 0;
  for (const int workers : options.workers) {
    progress.show(source.name + ": " + counted(workers, "worker"));
    const Measured m = measure(source, options, workers);
    curve.points.emplace_back(workers, m.images_per_s);
    // The knee: the fewest workers whose rate no later count beats by more
    // than 5 %.
    if (m.images_per_s > 1.05 * curve.points[knee].second)
      knee = curve.points.size() - 1;
    results.push_back({{"workers", workers},
                       {"images_per_s", m.images_per_s},
                       {"images_per_cpu_s", m.images_per_cpu_s},
                       {"wait_fraction", m.wait_fraction}});
  }
  progress.clear();
  curve.marked = {knee};
  if (!options.json) {
    std::cout << source.name << "  ("
              << counted(static_cast<int64_t>(source.images), "image") << ")\n";
    for (size_t i = 0; i < results.size(); ++i)
      std::cout << "  " << counted(options.workers[i], "worker") << "  "
                << fixed(results[i]["images_per_s"], 1) << " images/s  "
                << fixed(results[i]["images_per_cpu_s"], 1)
                << " images per CPU second" << (i == knee ? "  <- knee" : "")
                << "\n";
  }
  sources.push_back({{"source", source.name},
                     {"images", source.images},
                     {"knee", options.workers[knee]},
                     {"results", std::move(results)}});
  plot.curves.push_back(std::move(curve));
}

void add_place(const std::string& place, const BenchLoaderOptions& options,
               Json& sources, Plot& plot) {
  if (options.crop > options.resize)
    throw ConfigError(
        "[bench] --crop is larger than --resize. Hint: choose crop <= resize");
  Stores stores;
  const UnlabeledSet set = all_images({place}, stores);
  Augmentation augmentation;
  augmentation.flip = true;
  augmentation.crop = TrainCrop::kRandom;
  const ImageReader reader(
      *set.source, {options.resize, options.crop, ResizeKind::kAntialias},
      augmentation, 1);
  const TrainSampler sampler(set.rows,
                             {.batch = static_cast<uint64_t>(options.batch)});
  add_source({place,
              set.rows.size(),
              set.manifest,
              reader,
              sampler,
              {options.batch, 0, 3, set.source->wanted_readers()}},
             options, sources, plot);
}

void add_config(const Config& config, const BenchLoaderOptions& options,
                Json& sources, Plot& plot) {
  check_names_data(config.data);
  const auto solo = solo_communicator();
  const Dataset dataset = load_dataset(config, *solo);
  require_training_images(dataset.splits);
  const auto& rows = dataset.splits.train.rows;
  const ImageReader reader(*dataset.images, training_preprocessing(config.data),
                           augmentation_of(config.data),
                           static_cast<uint64_t>(config.run.seed));
  const auto sampler =
      training_sampler(config.data, dataset.images->index(), rows,
                       {.seed = static_cast<uint64_t>(config.run.seed),
                        .mixup = config.train.mixup,
                        .batch = static_cast<uint64_t>(options.batch)});
  add_source(
      {options.files.back(), rows.size(), dataset.manifest, reader, *sampler,
       loader_options(config.data, options.batch, *dataset.images, 1)},
      options, sources, plot);
}

int run(const BenchLoaderOptions& options, Invocation& invocation) {
  Json sources = Json::array();
  Plot plot{.title = "Loader: images/s by workers (ring: the knee)",
            .x_label = "workers",
            .y_label = "images/s",
            .curves = {},
            .x_from_zero = true,
            .from_zero = true};
  if (!options.files.empty())
    add_config(load_config({options.files.begin(), options.files.end()},
                           options.set, &invocation.variables),
               options, sources, plot);
  for (const auto& place : options.images)
    add_place(place, options, sources, plot);
  if (sources.empty())
    throw ConfigError(
        "[bench] nothing to load. Hint: a config, or --images FOLDER");
  if (!options.svg.empty())
    write_in_time(timeout_of_start(options.set), options.svg,
                  svg_plot(plot) + "\n", "--svg");
  if (options.json)
    std::cout << json_text(Json{{"sources", sources},
                                {"peak_bytes", peak_rss_bytes()}})
              << std::endl;
  return 0;
}

}  // namespace

void add_bench_loader(CLI::App& bench, Invocation& invocation) {
  auto options = std::make_shared<BenchLoaderOptions>();
  auto* command = bench.add_subcommand("loader",
                                       "read, decode, resize and crop with "
                                       "growing numbers of workers, by source");
  auto* files = command->add_option(
      "config", options->files,
      "YAML files, as for train: its training images, as it reads and changes "
      "them");
  add_set_option(*command, options->set, "the files");
  command
      ->add_option("--images", options->images,
                   "instead: folder, archive, shards, pack or s3:// prefix; "
                   "several are measured one by one")
      ->excludes(files);
  add_picture_options(*command, options->resize, options->crop, options->batch);
  for (const char* of_config : {"--resize", "--crop"})
    command->get_option(of_config)->excludes(files);
  command
      ->add_option("--workers", options->workers,
                   "comma-separated numbers of workers")
      ->delimiter(',')
      ->check(CLI::Range(0, 256));
  command->add_option("--count", options->count, "images per round")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "rounds; medians are shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--svg", options->svg, "write the curves to this SVG file")
      ->check(in_file_system());
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    invocation.run = [&invocation, options] {
      return run(*options, invocation);
    };
  });
}

}  // namespace chexnet
