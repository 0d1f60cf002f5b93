// pack: writes a data set anew for fast reading, as resized pixels or as
// TFRecord shards.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "chexnet/app/commands.hpp"
#include "chexnet/app/enter_world.hpp"
#include "chexnet/app/run_options.hpp"
#include "chexnet/config/load.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/path_inside.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/core/text_parts.hpp"
#include "chexnet/data/pack_job.hpp"
#include "chexnet/launch/machine/affinity.hpp"
#include "chexnet/train/run/config_agreement.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "object_files.hpp"

namespace chexnet {
namespace {

struct PackDatasetOptions {
  std::vector<std::string> files, set;
  std::string out, format = "pixels", split = "all", prefix;
  size_t per_shard = 256;
  int ranks = 1, threads = 0;
  bool json = false;
};

std::string shard_prefix(const PackDatasetOptions& options) {
  if (!options.prefix.empty()) return options.prefix;
  return options.split == "all" ? "train" : options.split;
}

std::vector<uint32_t> rows_of(const std::string& split, const Splits& splits) {
  if (split != "all") return splits.named(split).rows;
  std::vector<uint32_t> rows;
  for (const Split* part : {&splits.train, &splits.val, &splits.test})
    rows.insert(rows.end(), part->rows.begin(), part->rows.end());
  std::ranges::sort(rows);  // table order
  return rows;
}

// There it would be found beside the images that it holds: each would be there
// twice.
void refuse_inside_images(const std::string& out, const DataConfig& data) {
  std::error_code error;
  for (const auto& images : data.images)
    if (!is_s3(images) && std::filesystem::is_directory(images, error) &&
        is_inside(out, images))
      throw ConfigError(
          "[pack] {} would be in {}, which data.images names, so that the next "
          "command finds each image twice. Hint: --out beside that folder",
          out, images);
}

void refuse_object_store(const std::string& shards) {
  if (is_s3(shards))
    throw ConfigError(
        "[pack] {}: shards are several files, and only a pack is written "
        "there. Hint: --out FOLDER, and copy that",
        shards);
}

PackJob job_of(const PackDatasetOptions& options, const Config& config,
               const Dataset& dataset) {
  PackJob job;
  job.out = options.out;
  job.timeout_s = config.launch.timeout_s;
  job.preprocessing = training_preprocessing(config.data);
  job.damage = DamagePolicy::of(config.data);
  job.per_shard = options.per_shard;
  job.prefix = shard_prefix(options);
  // On an object store most of a thread's time is waiting.
  job.threads = options.threads > 0
                    ? options.threads
                    : std::max(static_cast<int>(allowed_cpus().size()),
                               dataset.images->wanted_readers());
  job.rows = rows_of(options.split, dataset.splits);
  if (job.rows.empty())
    throw DataError("[pack] the {} split has no images. Hint: --split all",
                    options.split);
  return job;
}

void report(const PackJob& job, const PackResult& result,
            const PackDatasetOptions& options, double seconds) {
  log_info(
      "pack: " + counted(std::ssize(job.rows), "image") + " in " + job.out +
      " (" + std::to_string(result.kept) + " were there already" +
      (result.damaged > 0
           ? ", " + std::to_string(result.damaged) + " damaged and left out"
           : "") +
      "), " + fixed(seconds, 1) + " s");
  if (!options.json) return;
  std::cout << json_text(Json{{"out", job.out},
                              {"format", options.format},
                              {"images", job.rows.size()},
                              {"written", result.written},
                              {"kept", result.kept},
                              {"damaged", result.damaged},
                              {"source_sha256", result.source_sha256},
                              {"seconds", seconds}})
            << std::endl;
}

// `place`: where the result of options.out is sent.
int run(const PackDatasetOptions& options, const std::string& place,
        Invocation& invocation) {
  const Config config =
      load_config({options.files.begin(), options.files.end()}, options.set,
                  &invocation.variables, [&options](Config& c) {
                    c.launch.ranks = options.ranks;
                    c.launch.device = DeviceKind::kCpu;
                  });
  check_names_data(config.data);
  if (!is_s3(place)) refuse_inside_images(options.out, config.data);
  const RankWorld world = enter_world(config.launch, invocation);
  if (const auto code = world.parent_exit_code()) return *code;
  Communicator& comm = world.comm();
  check_same_config(comm, config);
  refuse_several_hosts(place, comm);
  const Dataset dataset = load_dataset(config, comm);
  const PackJob job = job_of(options, config, dataset);

  Progress progress(comm.rank() == 0);
  const double start = now_s();
  const auto show = [&](uint64_t done, uint64_t all) {
    const double seconds = now_s() - start;
    progress.show(
        "packing: " +
        fixed(static_cast<double>(done) * comm.size() / seconds, 0) +
        " images/s, " +
        percent_and_time_left(
            static_cast<double>(done) / static_cast<double>(all), seconds));
  };
  const bool pixels = options.format == "pixels";
  const PackResult result =
      pixels
          ? write_pixel_pack(job, dataset.manifest, *dataset.images, comm, show)
          : write_records(job, dataset.manifest, *dataset.images, comm, show);
  progress.clear();
  if (comm.rank() == 0) report(job, result, options, now_s() - start);
  return 0;
}

}  // namespace

void add_pack(CLI::App& app, Invocation& invocation) {
  auto* command = app.add_subcommand(
      "pack", "rewrite a data set for fast reading: pixels or TFRecord shards");
  auto options = std::make_shared<PackDatasetOptions>();
  command
      ->add_option("config", options->files, "YAML files with the data section")
      ->required();
  command
      ->add_option("--out", options->out,
                   "pack file (NAME.pack, s3:// too), or folder of shards")
      ->check(in_known_store())
      ->required();
  command
      ->add_option("--format", options->format,
                   "pixels (at data.resize) or tfrecord")
      ->check(CLI::IsMember({"pixels", "tfrecord"}))
      ->capture_default_str();
  command->add_option("--split", options->split, "all, train, val or test")
      ->check(CLI::IsMember({"all", "train", "val", "test"}))
      ->capture_default_str();
  command->add_option("--prefix", options->prefix,
                      "tfrecord: name of the shards (the split's)");
  command
      ->add_option("--per-shard", options->per_shard,
                   "tfrecord: images per shard")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_set_option(*command, options->set, "the files");
  add_ranks_option(*command, options->ranks);
  command
      ->add_option("--threads", options->threads,
                   "threads per rank; 0 = its cores, 32 for s3://")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json,
                    "one JSON object on stdout (docs/json.md)");
  command->callback([&invocation, options] {
    if (options->format == "pixels" && !options->out.ends_with(".pack"))
      throw CLI::ValidationError("--out", "a pack's name ends with .pack");
    invocation.run = [&invocation, options] {
      refuse_ranks_of_others(options->out);
      if (options->format != "pixels") refuse_object_store(options->out);
      ObjectFiles objects(options->set);
      PackDatasetOptions local = *options;
      local.out = objects.output_file(options->out, "");
      return objects.finish(run(local, options->out, invocation));
    };
  });
}

}  // namespace chexnet
