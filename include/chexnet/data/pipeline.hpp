// The two input pipelines of Dell's article on CheXNet (TensorFlow 1.12,
// tf.data) over TFRecord shards, reproduced on the order of records:
//
//   old: TFRecordDataset(all) -> map(parse) -> shard(size, rank) -> shuffle
//        -> repeat -> batch -> prefetch. Parsing comes before the shard, so
//        every rank decodes every image.
//   new: shard(size, rank) on files -> shuffle files
//        -> parallel_interleave(cycle_length) -> prefetch -> shuffle records
//        -> repeat -> map_and_batch -> prefetch.
//
// Both are deterministic for a given seed and number of ranks; a rank never
// sees the files of another (new) and the end of an epoch falls at another step
// on each rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chexnet/core/philox.hpp"
#include "chexnet/data/image_index.hpp"
#include "chexnet/data/stream.hpp"

namespace chexnet {

// Rows of the manifest by shard, in the order of the records.
using Shards = std::vector<std::vector<uint32_t>>;
// Shards in the order of their names, with the records that belong to `rows`.
// ConfigError when an image is in no TFRecord shard.
Shards shards_of(const ImageIndex& index, const std::vector<uint32_t>& rows);

// tf.data's steps, on sequences.
template <class Item>
std::vector<Item> every_nth(const std::vector<Item>& items, size_t size,
                            size_t rank) {
  std::vector<Item> own;
  for (size_t i = rank; i < items.size(); i += size) own.push_back(items[i]);
  return own;
}
// One record from each of `cycle_length` open files in turn; a file that ends
// is replaced by the next one in its slot.
std::vector<uint32_t> interleave(const Shards& files, size_t cycle_length);
// Takes each next item at random from a buffer that holds the next `size` ones.
std::vector<uint32_t> shuffle_in_buffer(const std::vector<uint32_t>& items,
                                        size_t size, Random& random);

// The lengths are the article's.
struct PipelineOptions {
  bool old = false;
  size_t cycle_length = 10;      // files read in turn (new)
  size_t shuffle_records = 500;  // buffer; 0 or 1 = off
};

class PipelineSampler final : public Sampler {
 public:
  // ConfigError when there are fewer shards than ranks (new). The order has no
  // batches: of `part` they only say where the rank begins.
  PipelineSampler(const Shards& shards, PipelineOptions options,
                  const StreamPart& part);
  Sample at(uint64_t ticket) const override;
  void discarded(uint64_t ticket, std::vector<uint32_t>& rows) const override;
  // The rank's epoch: positions in its sequence.
  std::vector<uint32_t> epoch_order(uint64_t epoch) const;

 private:
  uint32_t item(uint64_t ticket) const;

  Shards shards_;
  PipelineOptions options_;
  uint64_t seed_, first_ticket_, rank_, world_size_;
  std::vector<uint32_t> all_;  // old: every record; items are positions in it
  uint64_t per_epoch_ = 0;
  EpochOrders orders_;
};

// ConfigError when data.pipeline cannot work with this data on so many ranks.
void check_pipeline(const DataConfig& config, const ImageIndex& index,
                    const std::vector<uint32_t>& rows, int world_size);

// The training order that the config asks for: TrainSampler, or one of the
// pipelines.
std::unique_ptr<Sampler> training_sampler(const DataConfig& config,
                                          const ImageIndex& index,
                                          const std::vector<uint32_t>& rows,
                                          const StreamPart& part);

}  // namespace chexnet
