// state.json of a checkpoint: the state that a resume takes from it is written
// as the same text.
#include "chexnet/train/run/train_state.hpp"
#include "fuzz/target.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  TrainState state;
  if (!accepted<CheckpointError>(
          [&] { state = TrainState::from_json(text_of(bytes), "x"); }))
    return;
  const std::string text = state.to_json();
  require(TrainState::from_json(text, "again").to_json() == text,
          "a state that is written reads back equal");
  state.forget_validation();
  require(TrainState::from_json(state.to_json(), "x").best_step == -1,
          "so is one without a validation");
}

std::vector<std::string> seeds() {
  TrainState state;
  state.step = 12;
  state.position = 192;
  state.best = 0.71;
  state.config = "train: {batch: 16}\n";
  state.validation_sha256 = "ab";
  TrainState impossible;
  impossible.step = -1;
  return {TrainState().to_json(), state.to_json(), impossible.to_json(),
          R"({"format": 2})"};
}

const Registered kTarget{{"state", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
