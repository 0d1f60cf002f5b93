// Shared by the benches: options of a batch of pictures, and a set of all
// images below a path. Labels do not matter here, so there is one finding, 0
// everywhere.
#include "bench.hpp"

#include <CLI/CLI.hpp>
#include <numeric>

#include "chexnet/core/error.hpp"

namespace chexnet {

void add_picture_options(CLI::App& command, int& resize, int& crop,
                         int& batch) {
  command.add_option("--resize", resize, "pixels")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  command.add_option("--crop", crop, "pixels")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  command.add_option("--batch", batch, "images per batch, each rank")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

UnlabeledSet all_images(const std::vector<std::string>& places,
                        Stores& stores) {
  std::vector<Container> containers;
  auto found = find_images(places, stores, containers);
  if (found.empty())
    throw DataError(
        "[bench] {}: no images. Hint: name a folder, archive, shard, pack or "
        "s3:// prefix",
        places.front());
  UnlabeledSet set;
  set.manifest.findings = {"none"};
  for (const auto& image : found) set.manifest.images.push_back(image.name);
  set.manifest.labels.resize(found.size());
  set.rows.resize(found.size());
  std::iota(set.rows.begin(), set.rows.end(), 0u);
  set.source = std::make_unique<ImageSource>(
      ImageIndex::of_found(std::move(found), std::move(containers)), stores);
  return set;
}

void add_bench(CLI::App& app, Invocation& invocation) {
  auto* bench = app.add_subcommand(
      "bench", "measure steps, links, loaders, a run; predict scaling");
  bench->require_subcommand(1);
  add_bench_step(*bench, invocation);
  add_bench_infer(*bench, invocation);
  add_bench_allreduce(*bench, invocation);
  add_bench_loader(*bench, invocation);
  add_bench_pipelines(*bench, invocation);
  add_bench_run(*bench, invocation);
  add_bench_scaling(*bench, invocation);
}

}  // namespace chexnet
