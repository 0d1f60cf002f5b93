// A config and --set assignments (NULs between them): what is accepted reads
// back the same after writing, and check_for_training() has a message for the
// rest.
#include "chexnet/config/load.hpp"
#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  Reader parts(bytes);
  const std::string yaml = parts.until('\0');
  std::vector<std::string> assignments;
  while (!parts.rest().empty()) assignments.push_back(parts.until('\0'));
  static MemoryFile file;
  const std::string path = file.holding(std::as_bytes(std::span(yaml)));
  Config config;
  std::vector<std::string> variables;
  if (!accepted<ConfigError>(
          [&] { config = load_config({path}, assignments, &variables); }))
    return;
  const std::string text = config_yaml(config);
  const Config again = load_config_text("again.yaml", text, {});
  require(config_yaml(again) == text, "a config that is written reads back");
  require(resume_conflicts(config, again).empty(), "and may be resumed");
  without_places(config);
  accepted<ConfigError>([&] { check_for_training(config); });
}

// Assignments over a config that may train, each of which something refuses,
// alone or together with another.
std::vector<std::string> contradictions() {
  return {"data.fold=4/3",
          "data.uncertain=[one, zero]",
          "data.uncertain=[one, Mass=zero]",
          "data.crop=300",
          "data.eval_resize=100",
          "data.mean=[1]",
          raw("train.epochs=0\0train.max_steps=0"),
          "train.warmup_epochs=20",
          raw("train.mixup=0.2\0data.pipeline=old"),
          raw("launch.gradient_compression=fp16\0train.precision=fp64"),
          "train.lr=1e99",
          "train.batch=1.5",
          "train.bath=8",
          "train.lr",
          "train={lr: 1}",
          "data.images=['${HOME}/a', '${NOT_SET_HERE:-b}', ~/c]",
          "data.images=['${NOT_SET_HERE}']",
          "data.images=['${OPEN']",
          "data.images=[gs://bucket/a]",
          "model.weights=s3://bucket/a",
          "data.s3.endpoint=https://user:word@host",
          "data.s3.endpoint=host:9000",
          "data.filter=[view=PA]",
          "launch.device=cuda",
          "data.stage=here"};
}

std::vector<std::string> seeds() {
  const auto with = [](const std::string& yaml, const std::string& sets) {
    return yaml + std::string(1, '\0') + sets;
  };
  std::vector<std::string> all;
  for (const auto& sets : contradictions())
    all.push_back(
        with("data: {manifest: {path: a.csv}, images: [b]}\nmodel: {weights: "
             "none}\n",
             sets));
  for (const auto& seed : std::initializer_list<std::string>{
           with("data: {images: [/a], resize: 64}\ntrain:\n  batch: 32\n",
                "train.lr=1e-4"),
           with("", "data.images=[a,b]"),
           with("", raw("model.arch=resnet50\0train.batch=auto")),
           config_yaml(Config{})})
    all.push_back(seed);
  return all;
}

const Registered kTarget{{"config", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
