// Rank 0 works first and alone: a fault is reported once, and a file system
// sees one scan of its folders instead of one per rank. The others then read
// the same tables but take the locations of images as text from rank 0. All
// ranks check that their tables are the same. Both stages may take any time;
// share_work watches that somebody makes progress, because the ranks that wait
// would exceed a collective's deadline.
#include "chexnet/train/run/dataset.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/label_counts.hpp"
#include "chexnet/data/stage.hpp"
#include "chexnet/data/table_text.hpp"
#include "chexnet/eval/predictions.hpp"
#include "chexnet/launch/environment.hpp"
#include "shared_pictures.hpp"

namespace chexnet {
namespace {

using Rows32 = std::vector<uint32_t>;

// Rows whose images are needed.
using Wanted = std::vector<Split*>;

Wanted all_of(Splits& splits) {
  return {&splits.train, &splits.val, &splits.test};
}

ImageIndex scan(const DataConfig& config, const Manifest& manifest,
                const Wanted& wanted, Stores& stores, const Tick& tick) {
  Rows32 rows;
  for (const Split* split : wanted)
    rows.insert(rows.end(), split->rows.begin(), split->rows.end());
  return config.missing == OnMissing::kSkip
             ? ImageIndex::scan_present(manifest, rows, config.images, stores,
                                        tick)
             : ImageIndex::scan(manifest, rows, config.images, stores, tick);
}

// Images that scan() let pass as missing leave the splits: the same on every
// rank.
void leave_out_missing(const ImageIndex& index, const Wanted& wanted,
                       Dataset& dataset) {
  for (Split* split : wanted)
    if (const auto missing = leave_out_missing(dataset.manifest, index, *split))
      dataset.missing[split->name] = missing;
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// All of tables and lists that results depend on.
std::string sum_of(const Manifest& m, const Splits& splits) {
  std::string sums = m.sha256 + m.finding_names_sha256;
  for (const auto* values : {&m.labels, &m.scored, &m.sample_weights})
    sums += sha256_hex(bytes_of(*values));
  for (const Split* split : {&splits.train, &splits.val, &splits.test})
    sums += split->sha256 + sha256_hex(bytes_of(split->rows));
  return sha256_hex(sums);
}

// `read` gives manifest and splits, on every rank the same.
Dataset load(const Config& all, Communicator& comm,
             const std::function<bool()>& stop,
             const std::function<Dataset()>& read,
             const std::function<Wanted(Splits&)>& wanted_of) {
  const DataConfig& config = all.data;
  const double timeout_s = all.launch.timeout_s;
  Dataset dataset;
  auto stores = open_stores(config);
  std::string places;
  ImageIndex index;
  const auto find = [&](WorkProgress& progress) {
    dataset = read();
    progress.advance();
    const Wanted wanted = wanted_of(dataset.splits);
    index = scan(config, dataset.manifest, wanted, *stores,
                 [&] { progress.advance(); });
    leave_out_missing(index, wanted, dataset);
    warn_of_missing_images(dataset);
    if (comm.size() > 1) places = index.to_text();
  };
  const auto follow = [&](WorkProgress&) {
    dataset = read();
    index = ImageIndex::from_text(places);
    leave_out_missing(index, wanted_of(dataset.splits), dataset);
  };
  using Work = std::function<void(WorkProgress&)>;
  const bool first = comm.rank() == 0;
  if (!share_work(comm, {"finding the images", timeout_s, stop},
                  first ? Work(find) : Work()))
    throw WorkStopped();
  if (comm.size() > 1) {
    places = broadcast_text(comm, std::move(places));
    if (!share_work(comm, {"reading the table", timeout_s, stop},
                    first ? Work() : Work(follow)))
      throw WorkStopped();
    check_equal_on_ranks(comm, dataset.manifest.path,
                         sum_of(dataset.manifest, dataset.splits));
  }
  index =
      staged(std::move(index), {config.stage, timeout_s, stop}, *stores, comm);
  dataset.stores = std::move(stores);
  dataset.images =
      std::make_unique<ImageSource>(std::move(index), *dataset.stores);
  return dataset;
}

// By rank 0: better to find a wrong split before training than after it.
void look_for_shared_pictures(const Config& config, Dataset& dataset,
                              Communicator& comm,
                              const std::function<bool()>& stop) {
  // Enough threads that a network's file system takes seconds for all of them.
  constexpr int kReaders = 8;
  constexpr size_t kMostRead = 20'000;
  const auto compare = [&](WorkProgress& progress) {
    const SharedPictures found = find_shared_pictures(
        dataset, kReaders, kMostRead, [&] { progress.advance(); });
    warn_of_shared_pictures(found);
    dataset.pictures_in_two_splits = found.count;
  };
  using Work = std::function<void(WorkProgress&)>;
  const SharedWorkOptions options{"comparing the splits' images",
                                  config.launch.timeout_s, stop};
  if (!share_work(comm, options, comm.rank() == 0 ? Work(compare) : Work()))
    throw WorkStopped();
}

// A network knows its findings and needs no policy of training.
DataConfig without_training(DataConfig config) {
  config.findings.clear();
  config.uncertain.of_findings.clear();
  return config;
}

// Of the columns that a run's config names, those that other tables have. With
// none in common they stay as they are: the tables' reader names what a header
// has.
void keep_present_columns(std::vector<std::string>& columns,
                          const std::vector<std::string>& tables,
                          const S3Config& s3) {
  if (columns.empty()) return;
  std::set<std::string> header;
  for (const auto& table : tables) {
    const std::string text = table_text(table, s3);
    std::vector<std::string_view> fields;
    CsvReader(text, table, separator_of(text)).next(fields);
    for (const auto field : fields) header.emplace(trimmed(field));
  }
  std::vector<std::string> present;
  for (const auto& column : columns)
    if (header.contains(column)) present.push_back(column);
  if (!present.empty()) columns = std::move(present);
}

// The table as the network sees it; fills the notes about findings.
void match(Manifest& manifest, const Config& config,
           const std::vector<std::string>& findings, TestSet& set) {
  const auto columns = manifest.findings;
  set.unknown = match_findings(manifest, findings);
  set.scored.clear();
  set.unlabeled.clear();
  for (const auto& name : scored_findings(config.eval.findings, findings))
    (find_finding(columns, name) ? set.scored : set.unlabeled).push_back(name);
  if (set.scored.empty())
    throw DataError(
        "[evaluate] {}: has no finding that is scored; its findings are {}. "
        "Hint: the network knows {}",
        manifest.path, listed(columns), listed(findings));
}

}  // namespace

Dataset load_dataset(const Config& config, Communicator& comm,
                     const std::function<bool()>& stop) {
  const auto read = [&] {
    Dataset dataset;
    dataset.manifest = read_manifest(config.data, config.eval);
    if (!config.data.sample_weight.empty() &&
        dataset.manifest.sample_weights.empty())
      throw ConfigError("[config] data.sample_weight: {} has no column '{}'",
                        dataset.manifest.path, config.data.sample_weight);
    dataset.splits = make_splits(dataset.manifest, config.data);
    return dataset;
  };
  Dataset dataset = load(config, comm, stop, read, all_of);
  look_for_shared_pictures(config, dataset, comm, stop);
  return dataset;
}

TestSet load_split(const Config& config, const std::string& split,
                   const std::vector<std::string>& findings, Communicator& comm,
                   const std::function<bool()>& stop) {
  TestSet set;
  const auto read = [&] {
    Dataset dataset;
    dataset.manifest =
        read_manifest(without_training(config.data), config.eval);
    match(dataset.manifest, config, findings, set);
    dataset.splits = make_splits(dataset.manifest, config.data);
    return dataset;
  };
  const auto wanted = [&](Splits& splits) {
    if (splits.named(split).rows.empty())
      throw DataError(
          "[evaluate] the {} split has no images. Hint: --split val, or set "
          "data.{}_list",
          split, split);
    Wanted asked = all_of(splits);
    std::erase_if(asked, [&](const Split* s) { return s->name != split; });
    return asked;
  };
  set.dataset = load(config, comm, stop, read, wanted);
  set.split = set.dataset.splits.named(split);
  return set;
}

TestSet load_tables(const Config& config,
                    const std::vector<std::string>& tables,
                    const std::vector<std::string>& findings,
                    Communicator& comm, const std::function<bool()>& stop) {
  TestSet set;
  std::string name;
  for (const auto& table : tables)
    name += (name.empty() ? "" : ", ") +
            std::filesystem::path(table).filename().string();
  const auto read = [&] {
    DataConfig data = without_training(config.data);
    keep_present_columns(data.manifest.columns.findings, tables, data.s3);
    data.manifest.path = tables;
    data.manifest.split.clear();
    Dataset dataset;
    dataset.manifest = read_manifest(data, config.eval);
    match(dataset.manifest, config, findings, set);
    dataset.splits = all_as_test(dataset.manifest, name);
    return dataset;
  };
  set.dataset = load(config, comm, stop, read, all_of);
  set.split = set.dataset.splits.test;
  return set;
}

void check_equal_on_ranks(Communicator& comm, const std::string& what,
                          const std::string& sum) {
  const auto all = gather_text(comm, sum + host_name());
  const auto other = std::ranges::find_if(all, [&](const std::string& text) {
    return text.compare(0, sum.size(), all[0], 0, sum.size()) != 0;
  });
  if (other == all.end()) return;
  throw DataError(
      "[data] rank {} on {} has read something else than rank 0 on {}: {} or a "
      "list of the config. Hint: is it one file, on storage that the hosts "
      "share?",
      other - all.begin(), other->substr(sum.size()), all[0].substr(sum.size()),
      what);
}

size_t Dataset::missing_of(const std::string& split) const {
  const auto found = missing.find(split);
  return found == missing.end() ? 0 : found->second;
}

void warn_of_missing_images(const Dataset& dataset) {
  std::vector<std::string> texts;
  const Splits& splits = dataset.splits;
  for (const Split* split : {&splits.train, &splits.val, &splits.test})
    if (const size_t missing = dataset.missing_of(split->name))
      texts.push_back(std::to_string(missing) + " of " +
                      std::to_string(split->rows.size() + missing) + " " +
                      split->name + " images");
  if (!texts.empty())
    log_warning(
        "[images] left out, as they are not there (data.missing=skip): " +
        listed(texts));
}

void warn_of_one_sided_findings(const Config& config, const Dataset& dataset) {
  const Manifest& m = dataset.manifest;
  const auto warn = [&](const Split& split, Labels which,
                        const Strings& findings) {
    if (split.rows.empty()) return;
    const auto text =
        one_sided_text(m, count_labels(m, split.rows, which), findings);
    if (!text.empty()) log_warning("[labels] " + split.name + ": " + text);
  };
  const Strings scored = scored_findings(config.eval.findings, m.findings);
  warn(dataset.splits.train, Labels::kTraining, m.findings);
  warn(dataset.splits.val, Labels::kScored, scored);
}

std::vector<uint32_t> training_rows(const Config& config,
                                    const Dataset& dataset) {
  if (config.train.order_file.empty()) return dataset.splits.train.rows;
  std::vector<uint32_t> rows;
  for (const auto& name : list_lines(read_text(config.train.order_file))) {
    const auto found = dataset.manifest.rows.find(name);
    if (found == dataset.manifest.rows.end() ||
        !dataset.images->index().has(found->second))
      throw DataError(
          "[train] {}: image '{}' is in no split. Hint: names as in the "
          "manifest",
          config.train.order_file, name);
    rows.push_back(found->second);
  }
  if (rows.empty())
    throw DataError("[train] {}: no names. Hint: one image name per line",
                    config.train.order_file);
  return rows;
}

}  // namespace chexnet
