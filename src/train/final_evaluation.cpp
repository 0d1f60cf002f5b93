// `best` is a link that rank 0 moves. Rank 0 alone looks whether it is there
// and reads it; the others get the weights by broadcast. On a shared file
// system they might still see the old link.
#include "chexnet/train/final_evaluation.hpp"

#include <limits>
#include <map>

#include "chexnet/core/files.hpp"
#include "chexnet/report/tensorboard_scores.hpp"
#include "chexnet/train/network_state.hpp"
#include "chexnet/train/predict.hpp"

namespace chexnet {
namespace {

// True when there are such weights; they are in the network of every rank then.
bool take_best_weights(const TrainingLoop::Parts& parts,
                       const TrainState& state) {
  Communicator& comm = parts.comm;
  const auto best = parts.folder.path() / "checkpoints" / "best";
  std::error_code error;
  const bool there =
      state.best_step >= 0 && std::filesystem::exists(best, error);
  if (!any_rank(comm, comm.rank() == 0 && there)) return false;
  if (comm.rank() == 0)
    read_network(best / "model.safetensors", parts.config,
                 parts.dataset.manifest.findings, parts.network.parameters());
  broadcast_from_rank_0(comm, parts.network.parameters(), nullptr);
  return true;
}

void write_scores(const TrainingLoop::Parts& parts, std::int64_t step,
                  const FinalScores& finals, const std::string& split,
                  const Predictions& predictions, const Scores& scores) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  write_atomically(parts.folder.path() / ("predictions_" + split + ".csv"),
                   predictions_csv(predictions));
  std::map<std::string, double> by_finding;
  for (std::size_t k = 0; k < scores.findings.size(); ++k)
    by_finding[scores.findings[k]] = scores.auroc[k].value_or(nan);
  parts.metrics->write("final", step,
                       {{"split", split},
                        {"images", static_cast<std::int64_t>(scores.images)},
                        {"damaged", static_cast<std::int64_t>(scores.damaged)},
                        {"weights", std::string(finals.best ? "best" : "last")},
                        {"best_step", finals.step},
                        {"loss", scores.loss.value_or(nan)},
                        {"mean_auroc", scores.mean_auroc.value_or(nan)},
                        {"auroc", by_finding}});
}

}  // namespace

std::optional<FinalScores> final_evaluation(const TrainingLoop::Parts& parts,
                                            const TrainState& state) {
  FinalScores finals;
  finals.best = take_best_weights(parts, state);
  finals.step = finals.best ? state.best_step : state.step;
  std::vector<SplitScores>& results = finals.splits;
  for (const SplitName asked : parts.config.eval.splits) {
    const std::string name = choice_name(asked);
    const Split& split = parts.dataset.splits.named(name);
    if (split.rows.empty()) continue;
    const auto prediction =
        predict_split(parts, split, [&] { return parts.stop.asked(0); });
    if (!prediction) return std::nullopt;
    Scores scores = score(prediction->predictions, parts.config.eval.findings);
    scores.loss = prediction->loss;
    results.push_back({name, std::move(scores), split.sha256});
    if (parts.metrics == nullptr) continue;  // not rank 0
    write_scores(parts, state.step, finals, name, prediction->predictions,
                 results.back().scores);
    results.back().figures =
        figures_of(prediction->predictions, parts.config.eval.findings,
                   {.threads = parts.device.cores});
    TensorBoardLog& tensorboard = parts.metrics->tensorboard();
    show_distributions(tensorboard, "final_scores/" + name, state.step,
                       prediction->predictions);
    show_figures(tensorboard, state.step, results.back());
  }
  return finals;
}

}  // namespace chexnet
