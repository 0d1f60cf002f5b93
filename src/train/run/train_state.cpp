// JSON has no NaN and no infinity, and both are meaningful here (no best yet,
// no loss yet): null stands for them and is read back as the member's initial
// value. Other doubles read back as the same bits, so a resume goes on with
// them.
#include "chexnet/train/run/train_state.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "chexnet/core/error.hpp"
#include "chexnet/core/json.hpp"
#include "chexnet/core/whole_number.hpp"

namespace chexnet {
namespace {

// JSON has neither NaN nor infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}
double number_or(const nlohmann::json& json, double otherwise) {
  return json.is_null() ? otherwise : json.get<double>();
}

// Steps, epochs and the like: names of folders and lengths follow from them.
int64_t count(const nlohmann::json& json) {
  const auto value = whole_number<int64_t>(json);
  if (value < 0) throw std::out_of_range("a count is negative");
  return value;
}

nlohmann::json json_of(const UnloggedSteps& steps) {
  nlohmann::json loss = nlohmann::json::array();
  for (const double sum : steps.loss) loss.push_back(number(sum));
  return {{"steps", steps.steps},
          {"skipped", steps.skipped},
          {"labeled", steps.labeled},
          {"gradient_norm", number(steps.gradient_norm)},
          {"loss", std::move(loss)}};
}
UnloggedSteps unlogged_of(const nlohmann::json& json) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  UnloggedSteps steps{count(json.at("steps")),
                      count(json.at("skipped")),
                      json.at("labeled"),
                      number_or(json.at("gradient_norm"), kNaN),
                      {}};
  for (const auto& sum : json.at("loss"))
    steps.loss.push_back(number_or(sum, kNaN));
  return steps;
}

nlohmann::json json_of(const std::vector<ResumeChange>& changes) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& c : changes)
    json.push_back({{"step", c.step},
                    {"what", c.what},
                    {"before", c.before},
                    {"after", c.after}});
  return json;
}
std::vector<ResumeChange> changes_of(const nlohmann::json& json) {
  std::vector<ResumeChange> changes;
  for (const auto& c : json)
    changes.push_back(
        {count(c.at("step")), c.at("what"), c.at("before"), c.at("after")});
  return changes;
}

constexpr int kFormat = 5;

}  // namespace

void TrainState::forget_validation() {
  best = std::numeric_limits<double>::quiet_NaN();
  best_step = -1;
  best_epoch = epoch;
  epochs_without_best = 0;
  plateau = {.factor = plateau.factor};
}

std::string TrainState::to_json() const {
  const nlohmann::json json = {
      {"format", kFormat},
      {"step", step},
      {"position", position},
      {"epoch", epoch},
      {"plateau",
       {{"factor", plateau.factor},
        {"best", number(plateau.best)},
        {"bad", plateau.bad}}},
      {"loss_scale",
       {{"value", loss_scale.value},
        {"good", loss_scale.good},
        {"dynamic", loss_scale.dynamic}}},
      {"best", number(best)},
      {"best_step", best_step},
      {"best_epoch", best_epoch},
      {"epochs_without_best", epochs_without_best},
      {"validation_sha256", validation_sha256},
      {"rung", rung},
      {"lost", lost},
      {"evaluation_due", evaluation_due},
      {"complete", complete},
      {"unlogged", json_of(unlogged)},
      {"summation_order",
       {{"ranks", order.ranks},
        {"threads", order.threads},
        {"gradient_compression", order.gradient_compression},
        {"versions", order.versions},
        {"bucket_mb", order.bucket_mb},
        {"accumulate", order.accumulate}}},
      {"looked_at", looked_at},
      {"origin", origin},
      {"changes", json_of(changes)},
      {"config", config}};
  return json_text(json, 1);
}

TrainState TrainState::from_json(const std::string& text,
                                 const std::string& origin) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (whole_number<int>(json.at("format")) != kFormat)
      throw CheckpointError(
          "[checkpoint] {}: written by another version of the program. Hint: "
          "use that version",
          origin);
    TrainState s;
    s.step = count(json.at("step"));
    s.position = whole_number<uint64_t>(json.at("position"));
    s.epoch = count(json.at("epoch"));
    const auto& plateau = json.at("plateau");
    s.plateau = {
        plateau.at("factor"),
        number_or(plateau.at("best"), std::numeric_limits<double>::infinity()),
        count(plateau.at("bad"))};
    const auto& scale = json.at("loss_scale");
    s.loss_scale = {scale.at("value"), count(scale.at("good")),
                    scale.at("dynamic")};
    s.best =
        number_or(json.at("best"), std::numeric_limits<double>::quiet_NaN());
    s.best_step = whole_number<int64_t>(json.at("best_step"));
    s.best_epoch = count(json.at("best_epoch"));
    s.epochs_without_best = count(json.at("epochs_without_best"));
    s.validation_sha256 = json.at("validation_sha256");
    s.rung = count(json.at("rung"));
    s.lost = json.at("lost");
    s.evaluation_due = json.at("evaluation_due");
    s.complete = json.at("complete");
    s.unlogged = unlogged_of(json.at("unlogged"));
    const auto& order = json.at("summation_order");
    s.order = {count(order.at("ranks")),         count(order.at("threads")),
               order.at("gradient_compression"), order.at("versions"),
               order.value("bucket_mb", 0.0),    count(order.at("accumulate"))};
    s.looked_at = json.value("looked_at", "");
    s.origin = json.at("origin");
    if (json.contains("changes")) s.changes = changes_of(json["changes"]);
    s.config = json.at("config");
    return s;
  } catch (const CheckpointError&) {
    throw;
  } catch (const std::exception& e) {  // of JSON, or of a number
    throw CheckpointError(
        "[checkpoint] {}: state.json: {}. Hint: the checkpoint is damaged",
        origin, e.what());
  }
}

}  // namespace chexnet
