#include "chexnet/model/formats/model_description.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/model/formats/export_texts.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

nlohmann::json description() {
  return {{"arch", "resnet50"},
          {"findings", {"Edema", "Mass"}},
          {"preprocessing",
           {{"resize", 256},
            {"eval_resize", 0},
            {"crop", 224},
            {"eval_crop_begin", 16},
            {"resize_kind", "antialias"},
            {"jpeg", "decoded at full size"},
            {"mean", {0.1, 0.2, 0.3}},
            {"std", {1, 2, 3}}}}};
}

ModelDescription described(const ScratchFolder& folder,
                           const nlohmann::json& json) {
  write_safetensors(folder / "a.safetensors", {}, {{"chexnet", json.dump()}});
  return model_description(SafetensorsFile(folder / "a.safetensors"), "a.file");
}

}  // namespace

TEST_CASE("a model's description is read, of its evaluation") {
  const ScratchFolder folder;
  auto json = description();
  ModelDescription model = described(folder, json);
  CHECK(model.arch == "resnet50");
  CHECK(model.findings == std::vector<std::string>{"Edema", "Mass"});
  CHECK(model.resize == 256);
  CHECK(model.crop == 224);
  CHECK(model.std == std::vector<double>{1, 2, 3});
  json["preprocessing"]["eval_resize"] = 320;
  CHECK(described(folder, json).resize == 320);

  for (const char* key : {"arch", "findings", "preprocessing"}) {
    auto damaged = description();
    damaged.erase(key);
    CHECK(error_of<CheckpointError>([&] {
            described(folder, damaged);
          }).find("[export] a.file: does not say") != std::string::npos);
  }
  json["preprocessing"]["mean"] = {0.5};
  CHECK_THROWS_AS(described(folder, json), CheckpointError);
}

TEST_CASE("what goes in and comes out is said of each kind of file") {
  const ScratchFolder folder;
  const ModelDescription model = described(folder, description());
  const ExportedFile gray = {"model.onnx"};
  const auto input = nlohmann::json::parse(preprocessing_json(model, gray));
  CHECK(input["input"]["type"] == "uint8");
  CHECK(input["input"]["shape"] == nlohmann::json({"N", 1, 224, 224}));
  CHECK(input["scaling_is_inside_the_model"] == true);
  CHECK(input["before_the_model"]["crop_begin"]["top"] == 16);
  const ExportedFile scaled = {"model.onnx", ModelInput::kFloat,
                               ModelOutput::kLogits};
  const auto other = nlohmann::json::parse(preprocessing_json(model, scaled));
  CHECK(other["input"]["shape"] == nlohmann::json({"N", 3, 224, 224}));
  CHECK(other["scaling_is_inside_the_model"] == false);

  const ExportedFile one = {"weights.safetensors", ModelInput::kOneChannel};
  const auto xrv = nlohmann::json::parse(preprocessing_json(model, one));
  CHECK(xrv["input"]["shape"] == nlohmann::json({"N", 1, 224, 224}));
  const auto scaled_to = [&](double gray) {
    return (gray / xrv["scaling"]["divide_by"].get<double>() -
            xrv["scaling"]["mean"][0].get<double>()) /
           xrv["scaling"]["std"][0].get<double>();
  };
  CHECK(scaled_to(0) == -1024);
  CHECK(scaled_to(255) == 1024);

  const auto labels = nlohmann::json::parse(labels_json(model, scaled));
  CHECK(labels["output"]["name"] == "logits");
  CHECK(labels["output"]["shape"] == nlohmann::json({"N", 2}));
  CHECK(labels["findings"] == nlohmann::json({"Edema", "Mass"}));
  CHECK(labels_text(model) == "Edema\nMass\n");
  const std::string triton = triton_config(model, scaled);
  for (const char* part : {"TYPE_FP32", "dims: [ 3, 224, 224 ]",
                           "name: \"logits\"", "dims: [ 2 ]"})
    CHECK(triton.find(part) != std::string::npos);
}
