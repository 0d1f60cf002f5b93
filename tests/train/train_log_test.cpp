#include "train/train_log.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/read_file.hpp"
#include "chexnet/data/image_reader.hpp"
#include "chexnet/train/run/dataset.hpp"
#include "report/metric_lines.hpp"
#include "support/catch.hpp"
#include "support/phantom_run.hpp"
#include "support/rank_results.hpp"

using namespace chexnet;

namespace {

// A loader whose waits the log asks for.
struct Source {
  PhantomRun run;
  std::unique_ptr<Communicator> solo = solo_communicator();
  Dataset dataset = load_dataset(run.config, *solo);
  ImageReader reader{
      *dataset.images, training_preprocessing(run.config.data), {}, 1};
  TrainSampler sampler{dataset.splits.train.rows, {.batch = 2}};
  Loader loader{dataset.manifest, reader, sampler, {.batch = 2, .workers = 0}};
};

StepResult step_with(double loss_sum, double gradient_norm, double labeled) {
  StepResult result;
  result.loss_sum = loss_sum;
  result.labeled = labeled;
  result.gradient_norm = gradient_norm;
  result.allreduce_wait_s = 0.25;
  return result;
}

std::vector<nlohmann::json> train_lines(const ScratchFolder& folder) {
  std::vector<nlohmann::json> lines;
  for_each_event(read_text(folder / "metrics.jsonl"),
                 [&](const nlohmann::json& event, const std::string&) {
                   lines.push_back(event);
                 });
  return lines;
}

}  // namespace

TEST_CASE(
    "a train line holds the mean loss over the labels since the line before") {
  const ScratchFolder folder;
  Source source;
  TrainState state;
  {
    MetricsLog metrics(folder.path(), {});
    TrainLog log(*source.solo, &metrics, 2);
    log.begin(0, 10, 10);
    log.add(step_with(6, 0.5, 3));
    StepResult last = step_with(4, 0.75, 2);
    last.applied = false;
    log.add(last);
    state.step = 2;
    state.position = 4;
    log.write(source.loader, state, 1e-3, std::nullopt);
    log.add(step_with(7, 0.1, 7));
    state.step = 3;
    log.write(source.loader, state, 1e-3, 120.0);
  }
  const auto lines = train_lines(folder);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["event"] == "train");
  CHECK(lines[0]["step"] == 2);
  CHECK(lines[0]["images"] == 4);
  CHECK(lines[0]["steps"] == 2);
  CHECK(lines[0]["skipped"] == 1);
  CHECK(lines[0]["loss"] == 2.0);
  CHECK(lines[0]["gradient_norm"] == 0.75);
  CHECK(lines[0]["allreduce_wait_s"] == 0.5);
  CHECK_FALSE(lines[0].contains("job_seconds_left"));
  CHECK(lines[1]["steps"] == 1);
  CHECK(lines[1]["loss"] == 1.0);
  CHECK(lines[1]["allreduce_wait_s"] == 0.25);
  CHECK(lines[1]["job_seconds_left"] == 120.0);
}

TEST_CASE(
    "a train line adds up the losses of all ranks and tells their mean wait") {
  const ScratchFolder folder;
  MetricsLog metrics(folder.path(), {});
  const auto rates = rank_results(2, [&](Communicator& comm) {
    Source source;
    TrainLog log(comm, comm.rank() == 0 ? &metrics : nullptr, 4);
    log.begin(0, 10, 10);
    StepResult result = step_with(comm.rank() == 0 ? 2 : 10, 1, 4);
    result.allreduce_wait_s = comm.rank() == 0 ? 0.25 : 0.75;
    log.add(result);
    TrainState state;
    state.step = 1;
    log.write(source.loader, state, 1e-3, std::nullopt);
    return log.images_per_s();
  });
  for (const double rate : rates) CHECK(rate > 0);
  const auto lines = train_lines(folder);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["loss"] == 3.0);
  CHECK(lines[0]["allreduce_wait_s"] == 0.5);
}

TEST_CASE("a line at a stop leaves its steps to the next start's first line") {
  const ScratchFolder folder;
  Source source;
  UnloggedSteps unlogged;
  {
    MetricsLog metrics(folder.path(), {});
    TrainLog log(*source.solo, &metrics, 2);
    log.begin(0, 10, 10);
    TrainState state;
    log.write_at_stop(source.loader, state, 0, std::nullopt);  // no step yet
    log.add(step_with(6, 0.5, 3));
    state.step = 1;
    log.write_at_stop(source.loader, state, 1e-3, std::nullopt);
    unlogged = log.unlogged();
  }
  {
    const auto lines = train_lines(folder);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0]["steps"] == 1);
    CHECK(lines[0]["loss"] == 2.0);
    CHECK(lines[0]["images_per_s"] > 0);
  }
  CHECK((unlogged.steps == 1 && unlogged.labeled == 3));
  {
    MetricsLog metrics(folder.path(), {.step = 1, .has_unlogged = true});
    TrainLog log(*source.solo, &metrics, 2);
    log.begin(1, 10, 10, unlogged);
    TrainState state;
    state.step = 1;
    // Stopped again before its first step.
    log.write_at_stop(source.loader, state, 0, std::nullopt);
  }
  CHECK(train_lines(folder).empty());
}

TEST_CASE("a resume's first line holds the steps before it too") {
  const auto line_of = [](int ranks_before, int ranks) {
    const UnloggedSteps unlogged =
        rank_results(ranks_before, [](Communicator& comm) {
          TrainLog log(comm, nullptr, 4);
          log.begin(0, 10, 10);
          StepResult skipped = step_with(comm.rank() == 0 ? 2 : 10, 0.5, 4);
          skipped.applied = false;
          log.add(skipped);
          return log.unlogged();
        }).front();
    const ScratchFolder folder;
    {
      MetricsLog metrics(folder.path(), {});
      std::ignore = rank_results(ranks, [&](Communicator& comm) {
        Source source;
        TrainLog log(comm, comm.rank() == 0 ? &metrics : nullptr, 4);
        log.begin(1, 10, 10, unlogged);
        log.add(step_with(4, 0.75, 4));
        TrainState state;
        state.step = 2;
        log.write(source.loader, state, 1e-3, std::nullopt);
        return 0;
      });
    }
    return train_lines(folder).front();
  };
  // 2 + 10 of the first step, and 4 of each rank.
  const nlohmann::json same = line_of(2, 2), fewer = line_of(2, 1);
  CHECK(same["steps"] == 2);
  CHECK(same["skipped"] == 1);
  CHECK(same["loss"] == 20.0 / 8);
  CHECK(same["gradient_norm"] == 0.75);
  CHECK(fewer["loss"] == 16.0 / 8);
}

TEST_CASE(
    "a loss of steps without any label is written as 0 and not as nothing") {
  const ScratchFolder folder;
  Source source;
  {
    MetricsLog metrics(folder.path(), {});
    TrainLog log(*source.solo, &metrics, 2);
    log.begin(0, 10, 10);
    log.add(step_with(0, 0, 0));
    log.write(source.loader, {}, 1e-3, std::nullopt);
  }
  CHECK(train_lines(folder).front()["loss"] == 0.0);
}
