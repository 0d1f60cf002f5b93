#include "chexnet/model/parameters.hpp"

#include <ATen/ATen.h>

#include "chexnet/model/network.hpp"
#include "chexnet/train/step.hpp"
#include "support/catch.hpp"
#include "support/parity_run.hpp"

using namespace chexnet;

namespace {

// Of a buffer of the layout of the values: what no parameter covers.
at::Tensor gaps(const Parameters& parameters, const at::Tensor& flat) {
  at::Tensor rest = flat.narrow(0, 0, parameters.size()).clone();
  for (const auto& p : parameters.list()) parameters.part(rest, p).zero_();
  return rest;
}

}  // namespace

TEST_CASE("each parameter begins aligned, in values, gradients and buckets") {
  for (const char* arch : {"densenet121", "resnet50"}) {
    INFO(arch);
    Network network(network_spec(arch), 14, {.precision = Precision::kBf16});
    const Parameters& p = network.parameters();
    int64_t end = 0;
    for (const auto& parameter : p.list()) {
      CHECK(parameter.begin % Parameters::kAlignment == 0);
      CHECK((parameter.begin >= end && parameter.begin < end + 64));
      end = parameter.end;
    }
    CHECK(p.size() % Parameters::kAlignment == 0);
    for (const auto& bucket :
         plan_buckets({p.extents(), static_cast<size_t>(p.size()),
                       static_cast<size_t>(p.size()),
                       static_cast<size_t>(p.size()) + 1000},
                      4, 4000000, GradientCompression::kBf16))
      CHECK(bucket.begin % Parameters::kAlignment == 0);
  }
}

TEST_CASE("gaps between parameters stay 0 whatever a step does") {
  for (const auto kind :
       {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
    INFO(choice_name(kind));
    Network network(network_spec("densenet121"), 14, {});
    Parameters& p = network.parameters();
    p.initialize(1);
    TrainConfig config;
    config.optimizer = kind;
    config.weight_decay = 0.1;
    config.clip_norm = 1e-3;
    const auto comm = solo_communicator();
    TrainStep step(network, *comm, {config, equal_weights()});
    for (const int s : {0, 1})
      step.run(parity_images(s), parity_labels(s), 84, 1e-2);
    CHECK(gaps(p, p.flat_values()).abs().max().item<float>() == 0);
    CHECK(gaps(p, p.flat_gradients()).abs().max().item<float>() == 0);
    for (const auto& [name, flat] : step.optimizer().slots())
      CHECK(gaps(p, flat).abs().max().item<float>() == 0);
  }
}
