// Everything here is a function of seed, rank and epoch: the whole order of an
// epoch is made when a worker takes its first ticket, and two epochs are kept,
// as workers may be in both.
#include "chexnet/data/pipeline.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>

#include "chexnet/core/error.hpp"
#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

void require_shards(size_t shards, int world_size) {
  if (shards < static_cast<size_t>(world_size))
    throw ConfigError(
        "[pipeline] {} for {} ranks: data.pipeline new gives each rank "
        "its own files. Hint: write more shards (pack --per-shard), or "
        "data.pipeline global",
        counted(static_cast<int64_t>(shards), "shard"), world_size);
}

}  // namespace

Shards shards_of(const ImageIndex& index, const std::vector<uint32_t>& rows) {
  std::map<std::string, std::vector<std::pair<uint64_t, uint32_t>>> by_path;
  for (const auto row : rows) {
    const ImageLocation& location = index.location(row);
    const Container& container = index.containers()[location.container];
    if (container.kind != ContainerKind::kTfrecord)
      throw ConfigError(
          "[pipeline] {} is no TFRecord shard, which data.pipeline old and new "
          "read. Hint: chexnet-train pack --format tfrecord, or data.pipeline "
          "global",
          container.path);
    by_path[container.path].emplace_back(location.number, row);
  }
  Shards shards;
  for (auto& [path, records] : by_path) {
    std::ranges::sort(records);
    auto& shard = shards.emplace_back();
    for (const auto& [number, row] : records) shard.push_back(row);
  }
  return shards;
}

std::vector<uint32_t> interleave(const Shards& files, size_t cycle_length) {
  assert(cycle_length > 0);
  struct Open {
    size_t file, next;
  };
  std::vector<uint32_t> out;
  std::vector<Open> open;
  size_t next_file = 0;
  const auto skip_empty = [&] {
    while (next_file < files.size() && files[next_file].empty()) ++next_file;
    return next_file < files.size();
  };
  while (open.size() < cycle_length && skip_empty())
    open.push_back({next_file++, 0});
  while (!open.empty()) {
    for (size_t slot = 0; slot < open.size();) {
      Open& o = open[slot];
      out.push_back(files[o.file][o.next++]);
      if (o.next < files[o.file].size()) {
        ++slot;
      } else if (skip_empty()) {
        o = {next_file++, 0};
        ++slot;
      } else {
        open.erase(open.begin() + static_cast<ptrdiff_t>(slot));
      }
    }
  }
  return out;
}

std::vector<uint32_t> shuffle_in_buffer(const std::vector<uint32_t>& items,
                                        size_t size, Random& random) {
  if (size <= 1) return items;
  std::vector<uint32_t> buffer, out;
  for (const auto item : items) {
    if (buffer.size() < size) {
      buffer.push_back(item);
      continue;
    }
    auto& taken = buffer[random.below(static_cast<uint32_t>(size))];
    out.push_back(taken);
    taken = item;
  }
  while (!buffer.empty()) {
    auto& taken = buffer[random.below(static_cast<uint32_t>(buffer.size()))];
    out.push_back(taken);
    taken = buffer.back();
    buffer.pop_back();
  }
  return out;
}

PipelineSampler::PipelineSampler(const Shards& shards, PipelineOptions options,
                                 const StreamPart& part)
    : options_(options),
      seed_(part.seed),
      first_ticket_(part.first_position /
                    static_cast<uint64_t>(part.world_size)),
      rank_(static_cast<uint64_t>(part.rank)),
      world_size_(static_cast<uint64_t>(part.world_size)) {
  assert(part.world_size > 0 && part.rank >= 0 && part.rank < part.world_size);
  if (options.old) {
    for (const auto& shard : shards)
      all_.insert(all_.end(), shard.begin(), shard.end());
    per_epoch_ = (all_.size() + world_size_ - 1 - rank_) / world_size_;
  } else {
    require_shards(shards.size(), part.world_size);
    shards_ = every_nth(shards, world_size_, rank_);
    for (const auto& shard : shards_) per_epoch_ += shard.size();
  }
  if (per_epoch_ == 0)
    throw ConfigError("[pipeline] rank {} has no images", part.rank);
}

std::vector<uint32_t> PipelineSampler::epoch_order(uint64_t epoch) const {
  Random random(seed_, Purpose::kOrder, epoch * world_size_ + rank_);
  std::vector<uint32_t> items;
  if (options_.old) {  // map(parse) over all, then shard
    items.resize(all_.size());
    std::iota(items.begin(), items.end(), 0u);
    items = every_nth(items, world_size_, rank_);
  } else {
    Shards files = shards_;
    shuffle(files, random);
    items = interleave(files, options_.cycle_length);
  }
  return shuffle_in_buffer(items, options_.shuffle_records, random);
}

uint32_t PipelineSampler::item(uint64_t ticket) const {
  const uint64_t own = first_ticket_ + ticket, epoch = own / per_epoch_;
  return orders_.item(epoch, own % per_epoch_,
                      [this](uint64_t e) { return epoch_order(e); });
}

Sample PipelineSampler::at(uint64_t ticket) const {
  const uint32_t chosen = item(ticket);
  return {.row = options_.old ? all_[chosen] : chosen,
          .position = (first_ticket_ + ticket) * world_size_ + rank_};
}

void PipelineSampler::discarded(uint64_t ticket,
                                std::vector<uint32_t>& rows) const {
  rows.clear();
  if (!options_.old) return;
  // The records between this one and the rank's next: parsed here, trained
  // elsewhere.
  const size_t begin = item(ticket) / world_size_ * world_size_;
  for (size_t i = begin; i < std::min<size_t>(begin + world_size_, all_.size());
       ++i)
    if (i % world_size_ != rank_) rows.push_back(all_[i]);
}

void check_pipeline(const DataConfig& config, const ImageIndex& index,
                    const std::vector<uint32_t>& rows, int world_size) {
  if (config.pipeline == PipelineKind::kGlobal) return;
  const Shards shards = shards_of(index, rows);
  if (config.pipeline == PipelineKind::kNew)
    require_shards(shards.size(), world_size);
}

std::unique_ptr<Sampler> training_sampler(const DataConfig& config,
                                          const ImageIndex& index,
                                          const std::vector<uint32_t>& rows,
                                          const StreamPart& part) {
  if (config.pipeline == PipelineKind::kGlobal || part.keep_order)
    return std::make_unique<TrainSampler>(rows, part);
  return std::make_unique<PipelineSampler>(
      shards_of(index, rows),
      PipelineOptions{.old = config.pipeline == PipelineKind::kOld}, part);
}

}  // namespace chexnet
