// ATen's back end with one fault on purpose, as a GPU's library might have it.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/forwarding_backend.hpp"

namespace chexnet {

// Nothing named: no fault.
struct PlantedFault {
  std::string scaled_weight{};    // forward and backward see `factor` times it
  std::string scaled_gradient{};  // `factor` times what is right
  double factor = 1;
};

class PlantedBackend final : public ForwardingBackend {
 public:
  PlantedBackend(std::unique_ptr<Backend> inner, Parameters& parameters,
                 PlantedFault fault)
      : ForwardingBackend(std::move(inner)),
        parameters_(parameters),
        fault_(std::move(fault)) {}

  at::Tensor forward(const at::Tensor& images, Mode mode,
                     const MicroBatch& micro_batch) override {
    if (mode == Mode::kTraining && !fault_.scaled_weight.empty()) {
      at::Tensor weight =
          parameters_.compute(parameters_.id_of(fault_.scaled_weight));
      right_ = weight.clone();
      weight.mul_(fault_.factor);
    }
    return ForwardingBackend::forward(images, mode, micro_batch);
  }
  void backward(const at::Tensor& dlogits,
                const MicroBatch& micro_batch) override {
    ForwardingBackend::backward(dlogits, micro_batch);
    if (right_.defined())
      parameters_.compute(parameters_.id_of(fault_.scaled_weight))
          .copy_(std::exchange(right_, {}));
    for (const auto& p : parameters_.list())
      if (p.name == fault_.scaled_gradient)
        parameters_.flat_gradients_and_statistics()
            .narrow(0, p.begin, p.end - p.begin)
            .mul_(fault_.factor);
  }
  std::string description(int64_t, int64_t) override {
    return "faulty on purpose";
  }

 private:
  Parameters& parameters_;
  PlantedFault fault_;
  at::Tensor right_;  // the weight while it is scaled
};

// The only back end of a network: the last of the default ones, with `fault`.
inline std::vector<BackendEntry> planted(const PlantedFault& fault) {
  const BackendEntry aten = default_backends().back();
  return only_backend([aten, fault](const BackendContext& context) {
    return std::make_unique<PlantedBackend>(aten.make(context),
                                            context.parameters, fault);
  });
}

}  // namespace chexnet
