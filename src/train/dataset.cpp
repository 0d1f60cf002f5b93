#include "chexnet/train/dataset.hpp"

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/data/stage.hpp"

namespace chexnet {
namespace {

Dataset read(const DataConfig& config) {
  Dataset dataset;
  dataset.manifest = read_manifest(config);
  dataset.splits = make_splits(dataset.manifest, config);
  return dataset;
}

}  // namespace

Dataset load_dataset(const DataConfig& config, Communicator& comm, double timeout_s) {
  Dataset dataset;
  auto stores = open_stores(config);
  std::string places;
  ImageIndex index;
  const auto find = [&](WorkProgress& progress) {
    dataset = read(config);
    progress.advance();
    std::vector<std::uint32_t> rows;
    for (const Split* split : {&dataset.splits.train, &dataset.splits.val, &dataset.splits.test})
      rows.insert(rows.end(), split->rows.begin(), split->rows.end());
    index = ImageIndex::scan(dataset.manifest, rows, config.images, *stores,
                             [&] { progress.advance(); });
    if (comm.size() > 1) places = index.to_text();
  };
  const auto follow = [&](WorkProgress&) {
    dataset = read(config);
    index = ImageIndex::from_text(places);
  };
  using Work = std::function<void(WorkProgress&)>;
  const bool first = comm.rank() == 0;
  share_work(comm, {"finding the images", timeout_s}, first ? Work(find) : Work());
  if (comm.size() > 1) {
    places = broadcast_text(comm, std::move(places));
    share_work(comm, {"reading the table", timeout_s}, first ? Work() : Work(follow));
  }
  index = staged(std::move(index), {config.stage, timeout_s}, *stores, comm);
  dataset.stores = std::move(stores);
  dataset.images = std::make_unique<ImageSource>(std::move(index), *dataset.stores);
  return dataset;
}

std::vector<std::uint32_t> training_rows(const Config& config, const Dataset& dataset) {
  if (config.train.order_file.empty()) return dataset.splits.train.rows;
  std::vector<std::uint32_t> rows;
  for (const auto& name : list_lines(read_text(config.train.order_file))) {
    const auto found = dataset.manifest.rows.find(name);
    if (found == dataset.manifest.rows.end() || !dataset.images->index().has(found->second))
      throw DataError("[train] " + config.train.order_file + ": image '" + name +
                      "' is in no split. Hint: names as in the manifest");
    rows.push_back(found->second);
  }
  if (rows.empty())
    throw DataError("[train] " + config.train.order_file +
                    ": no names. Hint: one image name a line");
  return rows;
}

}  // namespace chexnet
