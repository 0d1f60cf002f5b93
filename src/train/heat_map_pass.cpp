// Pixels come twice: from the loader as the network's input, and once more as
// they are stored, for images with a map.
#include "chexnet/train/heat_map_pass.hpp"

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "batch_tensors.hpp"
#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/progress.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/image/crop.hpp"
#include "chexnet/data/image/decode.hpp"
#include "chexnet/data/loader.hpp"
#include "chexnet/model/layer_cam.hpp"
#include "device_deadline.hpp"

namespace chexnet {
namespace {

// Memory that a rank keeps from image to image.
struct Stored {
  FetchedImage fetched;
  GrayImage picture;
};

void read_stored(const RunContext& run, uint32_t row, Stored& into) {
  run.dataset.images->fetch(row, into.fetched);
  decode_fetched(into.fetched, {}, into.picture);
}

// The same; false, and logged, where the image has gone since it was scored.
bool found_stored(const RunContext& run, uint32_t row, bool absent_is_damage,
                  Stored& into) {
  try {
    read_stored(run, row, into);
  } catch (const AbsentError& e) {
    if (!absent_is_damage) throw;
    log_warning(e.what());
    return false;
  }
  return true;
}

// From pixels of the network's input to fractions of the picture.
Box in_picture(const Preprocessing& p, double left, double top, double right,
               double bottom) {
  const double begin = center_crop_begin(p.resize, p.crop), side = p.resize;
  return {(begin + left) / side, (begin + top) / side, (begin + right) / side,
          (begin + bottom) / side};
}

// Values of [height, width] on a grid of the network's input.
HeatMap placed(std::vector<float> values, int width, int height, MapGrid grid,
               const Preprocessing& preprocessing) {
  const double edge = grid.first - grid.step / 2;
  return {width, height, std::move(values),
          center_crop_place(preprocessing.resize, preprocessing.crop),
          in_picture(preprocessing, edge, edge, edge + grid.step * width,
                     edge + grid.step * height)};
}

// Of one batch: logits, and maps of the findings that `request` wants.
struct BatchMaps {
  std::vector<double> logits;  // [N,K]
  size_t findings = 0;
  std::function<HeatMap(size_t, size_t)> map = {};  // of image and finding
  std::function<double(size_t, size_t)> bias = {};  // HeatMaps::bias
};

BatchMaps last_maps(Network& network, const at::Tensor& images,
                    const HeatMapKind& kind, const Preprocessing& p) {
  const auto maps =
      std::make_shared<HeatMaps>(heat_maps(network, images, kind));
  const auto map = [maps, &p](size_t image, size_t finding) {
    const float* first = maps->map(image, finding);
    return placed({first, first + maps->pixels()}, maps->width, maps->height,
                  maps->grid, p);
  };
  return {maps->logits, maps->findings, map,
          [maps](size_t image, size_t finding) {
            return maps->bias(image, finding);
          }};
}

BatchMaps middle_maps(Network& network, const at::Tensor& images,
                      LayerCam& layer_cam, const Preprocessing& p) {
  const at::Tensor logits = network.forward(images, Mode::kInference)
                                .to(at::kCPU, at::kDouble)
                                .contiguous();
  const auto* first = logits.const_data_ptr<double>();
  layer_cam.compute(images);
  const auto map = [&layer_cam, &p](size_t image, size_t finding) {
    return placed(layer_cam.map(image, finding), layer_cam.width(),
                  layer_cam.height(), layer_cam.grid(), p);
  };
  return {{first, first + logits.numel()},
          static_cast<size_t>(logits.size(1)),
          map,
          [](size_t, size_t) { return 0.0; }};
}

// Of an ensemble: means over its members.
BatchMaps mean_of_members(std::vector<BatchMaps> members) {
  if (members.size() == 1) return std::move(members.front());
  const auto all =
      std::make_shared<const std::vector<BatchMaps>>(std::move(members));
  BatchMaps mean{.logits = std::vector<double>(all->front().logits.size()),
                 .findings = all->front().findings};
  const auto count = static_cast<double>(all->size());
  for (const auto& maps : *all)
    for (size_t i = 0; i < mean.logits.size(); ++i)
      mean.logits[i] += maps.logits[i] / count;
  mean.map = [all](size_t image, size_t finding) {
    HeatMap sum = all->front().map(image, finding);
    for (size_t m = 1; m < all->size(); ++m) {
      const HeatMap map = (*all)[m].map(image, finding);
      for (size_t i = 0; i < sum.values.size(); ++i)
        sum.values[i] += map.values[i];
    }
    for (float& value : sum.values) value /= static_cast<float>(all->size());
    return sum;
  };
  mean.bias = [all, count](size_t image, size_t finding) {
    double sum = 0;
    for (const auto& maps : *all) sum += maps.bias(image, finding);
    return sum / count;
  };
  return mean;
}

// The networks of a run, prepared for maps of one kind.
class MapNetworks {
 public:
  MapNetworks(const RunContext& run, const HeatMapKind& kind) : kind_(kind) {
    for (Network* network : run.networks()) {
      Member& member = members_.emplace_back(*network);
      if (kind.method == HeatMapMethod::kLayerCam)
        member.layer_cam.emplace(*network);
    }
  }
  // The maps are of these images until the next call.
  BatchMaps maps(const at::Tensor& images, const Preprocessing& p) {
    std::vector<BatchMaps> of_members;
    for (Member& member : members_)
      of_members.push_back(
          member.layer_cam
              ? middle_maps(member.network, images, *member.layer_cam, p)
              : last_maps(member.network, images, kind_, p));
    return mean_of_members(std::move(of_members));
  }

 private:
  struct Member {
    explicit Member(Network& of) : network(of), fixed(of) {}
    Network& network;
    Network::FixedWeights fixed;
    std::optional<LayerCam> layer_cam;
  };
  HeatMapKind kind_;
  std::list<Member> members_;
};

void use_batch(const RunContext& run, const Batch& batch, const BatchMaps& maps,
               bool absent_is_damage, Stored& stored,
               const std::function<void(const MappedImage&)>& use) {
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    if (batch.samples[i].padding) continue;
    if (!batch.errors[i].empty()) {
      log_warning(batch.errors[i]);
      continue;
    }
    const uint32_t row = batch.samples[i].row;
    if (!found_stored(run, row, absent_is_damage, stored)) continue;
    const std::span<const double> logits(maps.logits);
    use({row, logits.subspan(i * maps.findings, maps.findings),
         [&](size_t k) { return maps.map(i, k); },
         [&](size_t k) { return maps.bias(i, k); }, stored.picture});
  }
}

// A class activation map shows what each pixel adds to the logit. With the bias
// and the threshold's logit taken off, 0 is the border between yes and no.
HeatMap map_above(const MappedImage& image, const MapAbove& shown) {
  HeatMap map = image.map(shown.finding);
  if (shown.method != HeatMapMethod::kCam) return map;
  constexpr double kLeast = 1e-12;
  const double p = std::clamp(shown.threshold, kLeast, 1 - kLeast);
  const auto shift =
      static_cast<float>(image.bias(shown.finding) - std::log(p / (1 - p)));
  for (float& value : map.values) value += shift;
  return map;
}

}  // namespace

void write_overlay(const std::filesystem::path& path, const MappedImage& image,
                   const MapAbove& shown, OverlayOptions look) {
  look.unit = unit_of(shown.method);
  look.nothing = shown.method == HeatMapMethod::kCam
                     ? "nowhere above " + number_text(shown.threshold)
                     : "nowhere";
  OutputFile file(path);
  file.write(overlay_png(image.picture, map_above(image, shown), look));
  file.commit();
}

// All ranks take equally many batches, some of padding alone, since each batch
// has a collective (whether somebody asked to stop).
bool for_each_map(const RunContext& run, const std::vector<uint32_t>& rows,
                  const HeatMapPass& pass,
                  const std::function<void(const MappedImage&)>& use,
                  const std::function<bool()>& stop) {
  if (rows.empty()) return true;
  MapNetworks networks(run, pass.kind);
  const auto ranks = static_cast<size_t>(run.comm.size());
  const auto batch = static_cast<size_t>(run.config.eval.batch);
  const size_t per_rank = (rows.size() + ranks - 1) / ranks;
  const size_t batches = (per_rank + batch - 1) / batch;

  const DataConfig& data = run.config.data;
  const Preprocessing preprocessing = evaluation_preprocessing(data);
  const ImageReader reader(*run.dataset.images, preprocessing,
                           Augmentation::none(), 0);
  const EvalSampler sampler(rows, run.comm.rank(), run.comm.size());
  Loader::Options options = loader_options(data, static_cast<int>(batch),
                                           reader.source(), run.device.cores);
  options.absent_is_damage = pass.absent_is_damage;
  Loader loader(run.dataset.manifest, reader, sampler, options);
  Progress progress(run.comm.rank() == 0);
  Stored stored;
  DeviceDeadline deadline(run.device.where, run.config.launch.timeout_s,
                          "a batch of heat maps");
  const auto images_late =
      images_deadline(run.config.launch.timeout_s, "heat maps");
  const double start = now_s();
  for (size_t b = 0; b < batches; ++b) {
    const Batch* next = [&] {
      const auto wait = images_late->wait();
      return loader.next_unless(stop);
    }();
    if (any_rank(run.comm, next == nullptr)) {
      progress.clear();
      return false;
    }
    const auto wait = deadline.wait();
    const at::Tensor images = tensors_of(*next).images.to(run.device.where);
    use_batch(run, *next, networks.maps(images, preprocessing),
              pass.absent_is_damage, stored, use);
    const double done =
        static_cast<double>(b + 1) / static_cast<double>(batches);
    progress.show(pass.what + ": " +
                  percent_and_time_left(done, now_s() - start));
  }
  progress.clear();
  return true;
}

}  // namespace chexnet
