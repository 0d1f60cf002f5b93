#include "records.hpp"

#include <unistd.h>

#include <string_view>
#include <unordered_set>

#include "chexnet/comm/transports.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/shell_words.hpp"
#include "chexnet/core/text_format.hpp"
#include "chexnet/data/audit.hpp"
#include "chexnet/data/findings.hpp"
#include "chexnet/data/split_table.hpp"
#include "chexnet/launch/batch_system.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/self_launch.hpp"
#include "chexnet/report/html_report.hpp"
#include "chexnet/report/model_card.hpp"
#include "chexnet/report/run_results.hpp"
#include "chexnet/report/run_summary.hpp"
#include "chexnet/report/tensorboard_scores.hpp"
#include "chexnet/train/run/recipe.hpp"
#include "chexnet/train/run/schedule.hpp"

namespace chexnet {
namespace {

std::optional<size_t> patients_in(const Manifest& manifest,
                                  const Split& split) {
  if (!manifest.knows_patients) return std::nullopt;
  std::unordered_set<std::string_view> patients;
  for (const auto row : split.rows) patients.insert(manifest.patients[row]);
  return patients.size();
}

// For results.json, all but what was scored.
RunFacts run_facts(const TrainingContext& run, const Rows& settings) {
  const Config& config = run.config;
  const Manifest& manifest = run.dataset.manifest;
  const Splits& splits = run.dataset.splits;
  const std::string folder = run.folder.path().string();
  RunFacts facts;
  facts.name = config.run.name;
  facts.command = command_text(
      {"chexnet-train", "train", folder + "/config.yaml", "--ranks",
       std::to_string(run.comm.size()), "--out", folder + "-again"});
  facts.table = manifest.path;
  facts.table_sha256 = manifest.sha256;
  facts.release = listed(
      compared_with_published(config.data.manifest, manifest, splits), 99);
  for (const Split* split : {&splits.train, &splits.val, &splits.test})
    facts.splits.push_back({split->name, split->rows.size(),
                            patients_in(manifest, *split), split->sha256,
                            run.dataset.missing_of(split->name)});
  if (manifest.knows_patients)
    facts.patients_in_two_splits = splits.leaked_patients;
  facts.pictures_in_two_splits = run.dataset.pictures_in_two_splits;
  facts.network = choice_name(config.model.arch);
  facts.frozen = frozen_text(config.model);
  facts.input_px = config.data.crop;
  facts.weighted_loss = moves_scores(config.train);
  facts.settings = settings;
  facts.transports = transports_json(run.device.transports);
  return facts;
}

// For `status`, which sees a run from outside.
MetricFields start_fields(const TrainingContext& run) {
  const auto images =
      static_cast<uint64_t>(run.dataset.splits.train.rows.size());
  return {{"ranks", static_cast<int64_t>(run.comm.size())},
          {"total_steps",
           total_steps(run.config.train, run.decisions.batch, images)},
          {"batch", run.decisions.batch},
          {"train_images", static_cast<int64_t>(images)},
          {"host", host_name()},
          {"pid", static_cast<int64_t>(getpid())},
          {"job", batch_job(process_environment()).id}};
}

void record_transports(const TrainingContext& run, int64_t step,
                       MetricsLog& metrics) {
  const NcclReport& transports = run.device.transports;
  const Json json = transports_json(transports);
  MetricFields fields;
  for (const auto& [name, value] : json.items())
    fields.emplace_back(name, MetricJson{json_text(value)});
  if (!fields.empty()) metrics.write("transports", step, fields);
  for (const auto& text : transport_warnings(transports, run.device.placements))
    log_warning(text);
}

}  // namespace

std::unique_ptr<MetricsLog> begin_records(const TrainingContext& run,
                                          const TrainState& state,
                                          const Rows& settings) {
  log_info("chexnet-train, for research use, not a medical device\n" +
           aligned(settings));
  warn_of_recipe(run.config, run.decisions, run.comm.size(),
                 std::ssize(run.dataset.splits.train.rows));
  const std::filesystem::path list = run.folder.path() / "split.csv";
  const PatientIds ids = ids_for(run.config, list);  // a bad key leaves no run
  std::unique_ptr<PrometheusFile> prometheus;
  if (!run.config.run.prometheus.empty())
    prometheus =
        std::make_unique<PrometheusFile>(run.config.run, run.folder.path());
  run.folder.require_lock();
  run.folder.claim(with_decisions(run.config, run.decisions));
  write_splits_csv(list,
                   split_rows(run.dataset.manifest, run.dataset.splits, ids));
  auto metrics = std::make_unique<MetricsLog>(
      run.folder.path(), MetricsLog::Start{state.step, state.evaluation_due,
                                           state.unlogged.steps > 0});
  metrics->show_in(std::move(prometheus));
  metrics->tensorboard().text("run/settings", state.step,
                              markdown_table(settings));
  metrics->write(run.folder.checkpoint() ? "restart" : "start", state.step,
                 start_fields(run));
  record_transports(run, state.step, *metrics);
  return metrics;
}

void finish_records(const TrainingLoop::Parts& parts, TrainState state,
                    const Rows& settings, const FinalScores& finals,
                    const std::optional<Overlap>& overlap) {
  warn_of_missing_images(parts.dataset);
  parts.folder.require_lock();
  const auto& folder = parts.folder.path();
  RunFacts facts = run_facts(parts, settings);
  if (!state.lost.empty())
    facts.settings.emplace_back("in its sweep", state.lost);
  facts.scored = finals.best ? "best" : "last";
  facts.scored_step = finals.step;
  facts.changes = state.changes;
  if (overlap) facts.overlap = overlap_json(*overlap);
  facts.gpu_totals = summarize_run(folder).gpu_totals;
  write_results(folder, facts, finals.splits);
  write_report(folder);
  TensorBoardLog& tensorboard = parts.metrics->tensorboard();
  tensorboard.text("run/model_card", state.step, model_card(folder));
  show_examples(tensorboard, state.step, folder);
  // After what may fail here: an error after it is one of a later start.
  MetricFields end;
  if (const auto failed = parts.folder.failed_commands())
    end.emplace_back("after_checkpoint_failures", *failed);
  parts.metrics->write("end", state.step, end);
  parts.metrics->sync();
  state.complete = true;
  parts.folder.store().replace_state(state.step, state.to_json());
}

}  // namespace chexnet
