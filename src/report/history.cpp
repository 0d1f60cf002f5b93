#include "history.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "chexnet/core/files.hpp"
#include "chexnet/report/metric_lines.hpp"

namespace chexnet {
namespace {

void add_train(History& history, double step, const nlohmann::json& event) {
  const auto figure = [&](const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_number()
               ? std::optional(found->get<double>())
               : std::nullopt;
  };
  if (const auto loss = figure("loss"))
    history.train_loss.points.emplace_back(step, *loss);
  const auto rate = figure("images_per_s");
  if (rate) history.images.points.emplace_back(step, *rate);
  const auto steps = figure("steps"), wait = figure("data_wait_s"),
             others = figure("allreduce_wait_s");
  if (!steps || *steps <= 0) return;
  if (wait) history.data_wait.points.emplace_back(step, 1e3 * *wait / *steps);
  if (others)
    history.allreduce_wait.points.emplace_back(step, 1e3 * *others / *steps);
}

}  // namespace

History history_of(const std::filesystem::path& folder) {
  History history;
  const auto path = folder / "metrics.jsonl";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return history;
  for_each_event(read_text(path), [&](const nlohmann::json& event,
                                      const std::string&) {
    const std::string kind = event.value("event", "");
    const double step = event.value("step", 0.0);
    const auto add = [&](Curve& curve, const char* key) {
      const auto y = event.find(key);
      if (y != event.end() && y->is_number())
        curve.points.emplace_back(step, y->get<double>());
    };
    if (kind == "train") add_train(history, step, event);
    if (kind == "val") {
      add(history.val_loss, "loss");
      add(history.val_auroc, "mean_auroc");
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
