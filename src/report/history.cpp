#include "history.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "chexnet/core/read_file.hpp"
#include "metric_lines.hpp"

namespace chexnet {
namespace {

std::optional<double> figure(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number()
             ? std::optional(found->get<double>())
             : std::nullopt;
}

// A point of `curve`, where the event has the figure.
void add(Curve& curve, double step, const nlohmann::json& event,
         const char* key) {
  if (const auto y = figure(event, key)) curve.points.emplace_back(step, *y);
}

// `start`: the step at which this part of the run began. The first line after a
// resume counts the steps before it, too; its waits are of those after it.
void add_train(History& history, double step, double start,
               const nlohmann::json& event) {
  add(history.train_loss, step, event, "loss");
  add(history.images, step, event, "images_per_s");
  const auto steps = figure(event, "steps"),
             wait = figure(event, "data_wait_s"),
             others = figure(event, "allreduce_wait_s");
  const double waited = std::min(steps.value_or(0), step - start);
  if (waited <= 0) return;
  if (wait) history.data_wait.points.emplace_back(step, 1e3 * *wait / waited);
  if (others)
    history.allreduce_wait.points.emplace_back(step, 1e3 * *others / waited);
}

}  // namespace

History history_of(const std::filesystem::path& folder) {
  History history;
  const auto path = folder / "metrics.jsonl";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return history;
  double start = 0;
  for_each_event(read_text(path), [&](const nlohmann::json& event,
                                      const std::string&) {
    const std::string kind = event.value("event", "");
    const double step = event.value("step", 0.0);
    if (kind == "start" || kind == "restart") start = step;
    if (kind == "train") add_train(history, step, start, event);
    if (kind == "val") {
      add(history.val_loss, step, event, "loss");
      add(history.val_auroc, step, event, "mean_auroc");
      if (event.value("best", "") == "yes" && !history.val_auroc.points.empty())
        history.val_auroc.marked = {history.val_auroc.points.size() - 1};
    }
    if (kind != "ranks") return;
    const auto own = event.value("own_ms_per_step", nlohmann::json::object());
    for (const auto& [rank, ms] : own.items())
      if (ms.is_number() &&
          rank.find_first_not_of("0123456789") == std::string::npos)
        history.own_ms[rank] = ms.get<double>();
  });
  return history;
}

}  // namespace chexnet
