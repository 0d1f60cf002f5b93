// The benches, one file each, and their shared parts.
#pragma once

#include <string>
#include <vector>

#include "chexnet/app/commands.hpp"
#include "chexnet/data/image_source.hpp"

namespace chexnet {

void add_bench_allreduce(CLI::App& bench, Invocation& invocation);
void add_bench_step(CLI::App& bench, Invocation& invocation);
void add_bench_infer(CLI::App& bench, Invocation& invocation);
void add_bench_loader(CLI::App& bench, Invocation& invocation);
void add_bench_pipelines(CLI::App& bench, Invocation& invocation);
void add_bench_run(CLI::App& bench, Invocation& invocation);
void add_bench_scaling(CLI::App& bench, Invocation& invocation);

// --resize, --crop and --batch.
void add_picture_options(CLI::App& command, int& resize, int& crop, int& batch);

// All images below one path, as a data set without labels.
struct UnlabeledSet {
  Manifest manifest;
  std::vector<uint32_t> rows;  // 0, 1, …
  std::unique_ptr<ImageSource> source;
};
// DataError when there are no images.
UnlabeledSet all_images(const std::vector<std::string>& places, Stores& stores);

}  // namespace chexnet
