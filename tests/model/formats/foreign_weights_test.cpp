#include "chexnet/model/formats/foreign_weights.hpp"

#include <cstring>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

struct Made {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

SafetensorsFile file_of(const ScratchFolder& folder,
                        const std::vector<Made>& tensors) {
  std::vector<NamedArray> arrays;
  for (const auto& t : tensors)
    arrays.push_back({t.name, ElementType::kF32, t.shape,
                      std::as_bytes(std::span(t.values))});
  write_safetensors(folder / "a.safetensors", arrays, {});
  return SafetensorsFile(folder / "a.safetensors");
}

}  // namespace

TEST_CASE("a file's tensors are found by torchvision's names") {
  const ScratchFolder folder;
  const auto file = file_of(folder, {{"module.fc.0.bias", {1}, {2.0f}},
                                     {"module.bn1.weight", {1}, {3.0f}}});
  const ForeignWeights weights(file, "a", {});
  REQUIRE(weights.find("fc.bias") != nullptr);
  CHECK(weights.find("fc.bias")->data.data() ==
        file.find("module.fc.0.bias")->data.data());
  CHECK(weights.name_in_file("fc.bias") == "module.fc.0.bias");
  CHECK(weights.find("module.fc.0.bias") == nullptr);
  // A file's arrays may stand in any order.
  CHECK(weights.text().starts_with(
      "2 tensors read by other names, e.g. module."));
}

TEST_CASE("two tensors of one name are refused, both are named") {
  const ScratchFolder folder;
  const auto file = file_of(
      folder, {{"fc.bias", {1}, {2.0f}}, {"module.fc.bias", {1}, {3.0f}}});
  const auto text =
      error_of<CheckpointError>([&] { ForeignWeights(file, "a.file", {}); });
  CHECK(text.find("[weights] a.file: ") != std::string::npos);
  CHECK(text.find("fc.bias and module.fc.bias would both be fc.bias") !=
        std::string::npos);
}

TEST_CASE("a first convolution of one channel becomes one of three") {
  const ScratchFolder folder;
  const std::vector<float> weight(64 * 49, 0.5f);
  const std::vector<float> mean(64, 1.0f);
  for (const auto& [convolution, norm] :
       {std::pair("features.conv0.weight", "features.norm0.running_mean"),
        std::pair("model.conv1.weight", "model.bn1.running_mean")}) {
    const auto file = file_of(
        folder, {{convolution, {64, 1, 7, 7}, weight}, {norm, {64}, mean}});
    const ForeignWeights weights(file, "a", {});
    REQUIRE(weights.has_gray_stem());
    const StemWeights wanted =
        from_gray_stem({{{64, 1, 7, 7}, weight}, {{64}, mean}}, InputScale());
    const NamedArray* turned = weights.find(
        convolution[0] == 'f' ? "features.conv0.weight" : "conv1.weight");
    REQUIRE(turned != nullptr);
    CHECK(turned->shape == wanted.weight.shape);
    REQUIRE(turned->data.size() == wanted.weight.values.size() * sizeof(float));
    CHECK(std::memcmp(turned->data.data(), wanted.weight.values.data(),
                      turned->data.size()) == 0);
    CHECK(weights.text().find("TorchXRayVision") != std::string::npos);
  }
  const auto alone = file_of(folder, {{"conv1.weight", {64, 1, 7, 7}, weight}});
  CHECK_FALSE(ForeignWeights(alone, "a", {}).has_gray_stem());
  const auto odd = file_of(folder, {{"conv1.weight", {64, 1, 7, 7}, weight},
                                    {"bn1.running_mean", {32, 2}, mean}});
  CHECK(error_of<CheckpointError>([&] {
          ForeignWeights(odd, "a", {});
        }).find("conv1.weight has one channel") != std::string::npos);
}
