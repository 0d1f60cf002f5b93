// A Network owns the parameters and leaves computing to a back end. Which one
// is decided for each size of images: entries stand in order of preference,
// each may refuse with a reason that description() repeats, and the last
// refuses nothing. A back end is made when it is first chosen, and kept.
#include "chexnet/model/network.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cassert>
#include <utility>

#include "architecture.hpp"

namespace chexnet {
namespace {

// Backward is hand-written, so operators need not tell autograd.
using WithoutAutograd = at::AutoDispatchBelowADInplaceOrView;

Parameters parameters_of(const NetworkSpec& spec, int64_t findings,
                         const NetworkOptions& options) {
  Parameters parameters;
  describe_parameters(spec, findings, parameters);
  parameters.allocate({options.device, master_type(options.precision),
                       compute_type(options.precision),
                       weight_format(options)});
  return parameters;
}

}  // namespace

BackendChoice::BackendChoice(BackendContext context,
                             std::vector<BackendEntry> entries)
    : context_(context), entries_(std::move(entries)), made_(entries_.size()) {
  assert(!entries_.empty());
}

const BackendChoice::Chosen& BackendChoice::of(int64_t height, int64_t width) {
  if (height == height_ && width == width_) return chosen_;
  Chosen chosen;
  size_t entry = 0;
  for (;; ++entry) {
    const std::string refusal =
        entries_[entry].refusal(context_, height, width);
    if (refusal.empty()) break;
    assert(entry + 1 < entries_.size());  // the last one refuses nothing
    chosen.refused += (chosen.refused.empty() ? "" : ", ") + refusal;
  }

  std::unique_ptr<Backend>& backend = made_[entry];
  if (backend == nullptr) {
    backend = entries_[entry].make(context_);
    backend->attach(attachments_);
  }
  chosen.backend = backend.get();
  chosen_ = std::move(chosen);
  height_ = height;
  width_ = width;
  return chosen_;
}

void BackendChoice::attach(Attachments attachments) {
  attachments_ = std::move(attachments);
  for (const auto& backend : made_)
    if (backend != nullptr) backend->attach(attachments_);
}

void BackendChoice::forget() {
  for (auto& backend : made_) backend.reset();
  chosen_ = {};
  height_ = width_ = -1;
}

Network::Network(const NetworkSpec& spec, int64_t findings,
                 NetworkOptions options, std::vector<BackendEntry> backends)
    : spec_(spec),
      options_(std::move(options)),
      parameters_(parameters_of(spec, findings, options_)),
      choice_(std::make_unique<BackendChoice>(
          BackendContext{spec_, findings, options_, parameters_},
          std::move(backends))) {}

at::Tensor Network::forward(const at::Tensor& images, Mode mode,
                            const MicroBatch& micro_batch) {
  assert(images.dim() == 4 && images.size(1) == 1 &&
         images.scalar_type() == at::kByte);
  assert(0 <= micro_batch.index && micro_batch.index < micro_batch.count);
  const WithoutAutograd guard;
  active_ = choice_->of(images.size(2), images.size(3)).backend;
  return active_->forward(images, mode, micro_batch);
}

void Network::backward(const at::Tensor& dlogits,
                       const MicroBatch& micro_batch) {
  assert(active_ != nullptr);  // a forward came before
  const WithoutAutograd guard;
  active_->backward(dlogits, micro_batch);
}

FeatureForward Network::forward_features(const at::Tensor& images) {
  assert(images.dim() == 4 && images.size(1) == 1 &&
         images.scalar_type() == at::kByte);
  const WithoutAutograd guard;
  active_ = choice_->of(images.size(2), images.size(3)).backend;
  return active_->forward_features(images);
}

at::Tensor Network::feature_gradient(const at::Tensor& dlogits) {
  assert(active_ != nullptr);  // a forward came before
  const WithoutAutograd guard;
  return active_->feature_gradient(dlogits);
}

void Network::freeze(FrozenPart until) {
  if (options_.frozen == until) return;
  options_.frozen = until;
  choice_->forget();
  active_ = nullptr;
}

const at::Tensor& Network::classifier_weight() const {
  return parameters_.value(parameters_.id_of(spec_.head.name + ".weight"));
}

std::string Network::description(int64_t batch, int64_t size) {
  const auto& [backend, refused] = choice_->of(size, size);
  const std::string text = backend->description(batch, size);
  return refused.empty() ? text : text + " (" + refused + ")";
}

bool Network::depends_on_threads(int64_t size) const {
  return choice_->of(size, size).backend->depends_on_threads();
}

std::optional<size_t> Network::planned_bytes(int64_t batch,
                                             int64_t size) const {
  return choice_->of(size, size).backend->planned_bytes(batch, size);
}

Network::TickGuard::TickGuard(Network& network, std::function<void()> tick)
    : network_(network) {
  assert(!network.ticks());
  network.set_tick(std::move(tick));
}
Network::TickGuard::~TickGuard() { network_.set_tick({}); }

Network::FixedWeights::FixedWeights(Network& network) : network_(network) {
  assert(!network.choice_->attachments().fixed_weights);
  network.set_fixed_weights(true);
}
Network::FixedWeights::~FixedWeights() { network_.set_fixed_weights(false); }

void Network::set_fixed_weights(bool fixed) {
  Attachments attachments = choice_->attachments();
  attachments.fixed_weights = fixed;
  choice_->attach(std::move(attachments));
}

void Network::set_tick(std::function<void()> tick) {
  Attachments attachments = choice_->attachments();
  attachments.tick = std::move(tick);
  choice_->attach(std::move(attachments));
}

void Network::set_layer_times(LayerTimes* layer_times) {
  Attachments attachments = choice_->attachments();
  attachments.layer_times = layer_times;
  choice_->attach(std::move(attachments));
}

void Network::set_profiler(Profiler* profiler) {
  Attachments attachments = choice_->attachments();
  attachments.profiler = profiler;
  choice_->attach(std::move(attachments));
}

}  // namespace chexnet
