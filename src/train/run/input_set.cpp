#include "chexnet/train/run/input_set.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "chexnet/comm/shared_work.hpp"
#include "chexnet/core/csv.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/plain_text.hpp"
#include "chexnet/data/stage.hpp"
#include "chexnet/launch/signals.hpp"

namespace chexnet {
namespace {

void refuse_hosts(const Communicator& comm) {
  if (comm.world().local_size != comm.size())
    throw ConfigError(
        "[predict] DICOM files are converted into a folder of this host, and "
        "there are ranks on others. Hint: ranks of one host, or convert them "
        "first: chexnet-dicom");
}

// Names in a row, one per line.
std::string names_text(const std::vector<InputImage>& images) {
  std::string text;
  for (const auto& image : images)
    if (image.problem.empty()) text += escaped(image.name) + "\n";
  return text;
}

Manifest unlabeled_manifest(const std::string& names,
                            const std::vector<std::string>& findings) {
  Manifest manifest;
  manifest.findings = findings;
  for (size_t at = 0, end = 0;
       (end = names.find('\n', at)) != std::string::npos; at = end + 1)
    manifest.images.push_back(unescaped(names.substr(at, end - at)));
  const size_t images = manifest.images.size();
  manifest.patients.resize(images);
  manifest.sexes.resize(images);
  manifest.views.resize(images);
  manifest.studies.resize(images);
  manifest.ages.assign(images, std::numeric_limits<float>::quiet_NaN());
  manifest.labels.assign(images * findings.size(),
                         std::numeric_limits<float>::quiet_NaN());
  manifest.knows_patients = false;
  return manifest;
}

}  // namespace

InputSet load_inputs(const Config& config,
                     const std::vector<std::string>& named,
                     const std::vector<std::string>& findings, TakenDicom taken,
                     Communicator& comm) {
  InputSet set;
  set.dataset.stores = open_stores(config.data);
  Stores& stores = *set.dataset.stores;
  ImageIndex index;
  std::string names, places;
  const auto find = [&](WorkProgress& progress) {
    const Tick tick = [&] { progress.advance(); };
    InputImages input = [&] {
      const StopAtOnce waits_for_input;
      set.places = input_places(named, config.data.s3);
      return find_input_images(set.places, stores, tick);
    }();
    set.converted = convert_dicom(input, taken, tick);
    if (set.converted) refuse_hosts(comm);
    set.images = std::move(input.images);
    set.left_out = input.left_out;
    index = ImageIndex::of_found(std::move(input.found),
                                 std::move(input.containers));
    names = names_text(set.images);
    if (comm.size() > 1) places = index.to_text();
  };
  using Work = std::function<void(WorkProgress&)>;
  // Whoever writes a list of names may take any time.
  const bool reads_list = std::ranges::any_of(named, [](const auto& name) {
    return name == "-" || name.starts_with('@');
  });
  const double timeout_s = reads_list ? std::numeric_limits<double>::infinity()
                                      : config.launch.timeout_s;
  share_work(comm, {"finding the images", timeout_s},
             comm.rank() == 0 ? Work(find) : Work());
  if (comm.size() > 1) {
    names = broadcast_text(comm, std::move(names));
    index = ImageIndex::from_text(broadcast_text(comm, std::move(places)));
  }
  index = staged(std::move(index), {config.data.stage, config.launch.timeout_s},
                 stores, comm);
  set.dataset.images = std::make_unique<ImageSource>(std::move(index), stores);
  set.dataset.manifest = unlabeled_manifest(names, findings);
  set.split.name = "images";
  set.split.rows.resize(set.dataset.manifest.size());
  std::iota(set.split.rows.begin(), set.split.rows.end(), 0u);
  return set;
}

}  // namespace chexnet
