#include "chexnet/model/step_comparison.hpp"

#include <ATen/ATen.h>

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/planted_backend.hpp"

using namespace chexnet;

namespace {

constexpr int64_t kNamedFindings = 14;

// In fp64, by the engine.
const StepRecord& reference_of(const std::string& arch) {
  static std::map<std::string, StepRecord> computed;
  if (!computed.contains(arch)) {
    Network network(network_spec(arch), kNamedFindings,
                    {.precision = Precision::kFp64});
    computed[arch] = record_synthetic_step(network);
  }
  return computed[arch];
}

std::vector<LayerDifference> compared(const std::string& arch,
                                      Precision precision,
                                      const PlantedFault& fault = {}) {
  Network network(network_spec(arch), kNamedFindings,
                  {.precision = precision, .own_engine = false},
                  planted(fault));
  return layer_differences(record_synthetic_step(network), reference_of(arch),
                           network.parameters(), precision);
}

}  // namespace

TEST_CASE("ATen's operators agree with the engine's step within rounding",
          "[arithmetic]") {
  for (const auto& [arch, precision] :
       {std::pair{"densenet121", Precision::kFp32},
        {"densenet121", Precision::kTf32},
        {"densenet121", Precision::kBf16},
        {"resnet50", Precision::kFp16}}) {
    const auto layers = compared(arch, precision);
    INFO(arch << " " << choice_name(precision) << ": worst "
              << worst_of(layers).layer << " " << worst_of(layers).difference);
    CHECK(first_disagreement(layers).empty());
    // Half of what is allowed is left for a GPU's order of sums.
    CHECK(worst_of(layers).of_allowed() < 0.5);
    CHECK(worst_of(layers).difference > 0);
  }
}

TEST_CASE("a layer whose forward is wrong is found and named") {
  const std::string text = first_disagreement(compared(
      "densenet121", Precision::kFp32,
      {.scaled_weight = "features.denseblock2.denselayer3.conv1.weight",
       .factor = 1.001}));
  INFO(text);
  CHECK(text.starts_with(
      "statistics of features.denseblock2.denselayer3.norm2 differ by 0.00"));
  CHECK(text.find("(statistics of features.denseblock2.denselayer3.norm1 still "
                  "agree)") != std::string::npos);
}

TEST_CASE("a layer whose gradient is wrong is found and named") {
  const std::string text = first_disagreement(
      compared("resnet50", Precision::kFp32,
               {.scaled_gradient = "layer3.2.bn1.bias", .factor = 1.05}));
  INFO(text);
  CHECK(text.starts_with("gradients of layer3.2.bn1 differ by 0.0"));
  CHECK(text.find("(gradients of layer3.2.conv2 still agree)") !=
        std::string::npos);
}

TEST_CASE("numbers that are none agree with nothing") {
  const StepRecord& reference = reference_of("densenet121");
  Network network(network_spec("densenet121"), kNamedFindings, {});
  StepRecord found{reference.logits, reference.gradients.clone(),
                   reference.evaluation.clone()};
  const auto problem = [&] {
    return first_disagreement(layer_differences(
        found, reference, network.parameters(), Precision::kBf16));
  };
  CHECK(problem().empty());
  found.evaluation.fill_(std::numeric_limits<double>::quiet_NaN());
  CHECK(problem().starts_with("logits of evaluation differ by nan"));
  const int64_t first_statistic = network.parameters().size();
  found.gradients[first_statistic] = std::numeric_limits<double>::infinity();
  CHECK(problem().starts_with("statistics of features.norm0 differ by inf"));
}
