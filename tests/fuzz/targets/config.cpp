// A config and --set assignments (NULs between them): what is taken is written
// and read again as the same, and check_for_training() has a word for the rest.
#include "chexnet/config/load.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  Reader parts(bytes);
  const std::string yaml = parts.until('\0');
  std::vector<std::string> assignments;
  while (!parts.rest().empty()) assignments.push_back(parts.until('\0'));
  Config config;
  if (!accepted<ConfigError>(
          [&] { config = load_config_text("x.yaml", yaml, assignments); }))
    return;
  const std::string text = config_yaml(config);
  const Config again = load_config_text("again.yaml", text, {});
  require(config_yaml(again) == text, "a config that is written reads back");
  require(resume_conflicts(config, again).empty(), "and may be resumed");
  without_places(config);
  accepted<ConfigError>([&] { check_for_training(config); });
}

std::vector<std::string> seeds() {
  const auto with = [](const std::string& yaml, const std::string& sets) {
    return yaml + std::string(1, '\0') + sets;
  };
  return {with("data: {images: [/a], resize: 64}\ntrain:\n  batch: 32\n",
               "train.lr=1e-4"),
          with("", "data.images=[a,b]"),
          with("", raw("model.arch=resnet50\0train.batch=auto")),
          config_yaml(Config{})};
}

const Registered kTarget{{"config", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
