#include "chexnet/train/dataset.hpp"

namespace chexnet {
namespace {

Dataset read(const DataConfig& config) {
  Dataset dataset;
  dataset.manifest = read_manifest(config);
  dataset.splits = make_splits(dataset.manifest, config);
  return dataset;
}

}  // namespace

Dataset load_dataset(const DataConfig& config, Communicator& comm) {
  Dataset dataset;
  std::string places;
  if (comm.rank() == 0) {
    dataset = read(config);
    std::vector<std::uint32_t> rows;
    for (const Split* split : {&dataset.splits.train, &dataset.splits.val, &dataset.splits.test})
      rows.insert(rows.end(), split->rows.begin(), split->rows.end());
    dataset.images = ImageIndex::scan(dataset.manifest, rows, config.images);
    if (comm.size() > 1) places = dataset.images.to_text();
  }
  if (comm.size() == 1) return dataset;
  places = broadcast_text(comm, std::move(places));
  if (comm.rank() != 0) {
    dataset = read(config);
    dataset.images = ImageIndex::from_text(places);
  }
  return dataset;
}

}  // namespace chexnet
