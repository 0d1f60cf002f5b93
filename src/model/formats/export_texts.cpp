#include "chexnet/model/formats/export_texts.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/json.hpp"
#include "chexnet/core/plain_text.hpp"

namespace chexnet {
namespace {

constexpr const char* kNotice =
    "For research use. Not a medical device: not to be used for diagnosis.";

Json input_shape(const ModelDescription& model, ModelInput input) {
  return {"N", input == ModelInput::kFloat ? 3 : 1, model.crop, model.crop};
}

// The scaling of gray values: divided, minus the mean, by the deviation of each
// channel.
Json scaling(const ModelDescription& model, ModelInput input) {
  if (input == ModelInput::kOneChannel)  // 1024 (2 gray / 255 - 1)
    return {{"divide_by", 255},
            {"channels", 1},
            {"mean", Json::array({0.5})},
            {"std", Json::array({1.0 / 2048})}};
  return {{"divide_by", 255},
          {"channels", 3},
          {"mean", model.mean},
          {"std", model.std}};
}

std::string resize_meaning(const std::string& kind) {
  if (kind == "antialias")
    return "the whole picture becomes a square, whatever its aspect; PyTorch: "
           "interpolate(uint8, mode='bilinear', antialias=True); Pillow: "
           "resize(size, BILINEAR)";
  return "the whole picture becomes a square, whatever its aspect; each pixel "
         "is the mean of the area it covers; OpenCV: INTER_AREA";
}

std::string page(const Json& json) { return json_text(json, 2) + "\n"; }

}  // namespace

std::string preprocessing_json(const ModelDescription& model,
                               const ExportedFile& file) {
  const bool gray = file.input == ModelInput::kGray;
  const Json before = {
      {"gray",
       "8 bits, one channel: color by ITU-R 601-2 luma, alpha dropped, 16-bit "
       "samples divided by 257, EXIF orientation applied"},
      {"jpeg", model.jpeg},
      {"resize", {{"height", model.resize}, {"width", model.resize}}},
      {"resize_kind", model.resize_kind},
      {"resize_meaning", resize_meaning(model.resize_kind)},
      {"crop", {{"height", model.crop}, {"width", model.crop}}},
      {"crop_begin", {{"top", model.crop_begin}, {"left", model.crop_begin}}}};
  return page({{"notice", kNotice},
               {"file", file.name},
               {"input",
                {{"name", kModelInputName},
                 {"type", gray ? "uint8" : "float32"},
                 {"shape", input_shape(model, file.input)}}},
               {"before_the_model", before},
               {"scaling", scaling(model, file.input)},
               {"scaling_is_inside_the_model", gray}});
}

std::string labels_json(const ModelDescription& model,
                        const ExportedFile& file) {
  return page({{"notice", kNotice},
               {"file", file.name},
               {"output",
                {{"name", output_name(file.output)},
                 {"shape", {"N", model.findings.size()}}}},
               {"findings", model.findings}});
}

std::string labels_text(const ModelDescription& model) {
  std::string text;
  for (const auto& finding : model.findings) text += printable(finding) + "\n";
  return text;
}

std::string test_vectors_json(const ModelDescription& model,
                              const std::vector<TestVector>& vectors) {
  Json list = Json::array();
  for (const auto& vector : vectors) {
    Json probabilities;
    for (size_t k = 0; k < model.findings.size(); ++k)
      probabilities[model.findings[k]] = vector.probabilities[k];
    list.push_back({{"image", vector.image},
                    {"input", vector.input},
                    {"probabilities", probabilities}});
  }
  return page({{"notice", "drawings, not patients"},
               {"computed", "in fp32 on a CPU by chexnet-train"},
               {"tolerance", 1e-4},
               {"vectors", list}});
}

std::string triton_config(const ModelDescription& model,
                          const ExportedFile& file) {
  const bool gray = file.input == ModelInput::kGray;
  const std::string size = std::to_string(model.crop);
  return std::string("# ") + kNotice +
         "\n"
         "platform: \"onnxruntime_onnx\"\n"
         "max_batch_size: 32\n"
         "input [\n"
         "  {\n"
         "    name: \"" +
         kModelInputName +
         "\"\n"
         "    data_type: " +
         (gray ? "TYPE_UINT8" : "TYPE_FP32") +
         "\n"
         "    dims: [ " +
         (gray ? "1, " : "3, ") + size + ", " + size +
         " ]\n"
         "  }\n"
         "]\n"
         "output [\n"
         "  {\n"
         "    name: \"" +
         output_name(file.output) +
         "\"\n"
         "    data_type: TYPE_FP32\n"
         "    dims: [ " +
         std::to_string(model.findings.size()) +
         " ]\n"
         "    label_filename: \"labels.txt\"\n"
         "  }\n"
         "]\n"
         "dynamic_batching { }\n";
}

}  // namespace chexnet
