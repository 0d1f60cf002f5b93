#include "chexnet/model/formats/model_description.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"

namespace chexnet {

// Every value is required. A guessed resize or scale would still give
// plausible probabilities.
ModelDescription model_description(const SafetensorsFile& file,
                                   const std::string& origin) {
  ModelDescription model;
  const auto found = file.metadata().find("chexnet");
  if (found != file.metadata().end()) model.text = found->second;
  try {
    const auto json = nlohmann::json::parse(model.text);
    json.at("arch").get_to(model.arch);
    json.at("findings").get_to(model.findings);
    const auto& input = json.at("preprocessing");
    const auto resize = input.at("resize").get<int64_t>();
    const auto other = input.at("eval_resize").get<int64_t>();
    model.resize = other > 0 ? other : resize;
    input.at("crop").get_to(model.crop);
    input.at("eval_crop_begin").get_to(model.crop_begin);
    input.at("resize_kind").get_to(model.resize_kind);
    input.at("jpeg").get_to(model.jpeg);
    input.at("mean").get_to(model.mean);
    input.at("std").get_to(model.std);
  } catch (const nlohmann::json::exception& e) {
    throw CheckpointError(
        "[export] {}: does not say what its findings and preprocessing are: "
        "{}. Hint: export a checkpoint as this program wrote it",
        origin, e.what());
  }
  if (model.mean.size() != 3 || model.std.size() != 3)
    throw CheckpointError(
        "[export] {}: its mean and std are not of three channels. Hint: export "
        "a checkpoint as this program wrote it",
        origin);
  return model;
}

}  // namespace chexnet
