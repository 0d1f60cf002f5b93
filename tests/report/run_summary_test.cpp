#include "chexnet/report/run_summary.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/config/load.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// A run folder with a start on this host, and further lines.
std::filesystem::path make_run(const ScratchFolder& folder, const std::string& name,
                               const Config& config, const std::string& lines) {
  folder.write(name + "/config.yaml", config_yaml(config));
  folder.write(name + "/metrics.jsonl",
               "{\"event\":\"start\",\"step\":0,\"host\":\"" + host_name() + "\"}\n" + lines);
  return folder / name;
}

std::string val_line(int step, double auroc, bool best) {
  return "{\"event\":\"val\",\"step\":" + std::to_string(step) +
         ",\"mean_auroc\":" + std::to_string(auroc) + ",\"best\":\"" + (best ? "yes" : "no") +
         "\"}\n";
}

std::string test_line(double auroc) {
  return "{\"event\":\"final\",\"step\":9,\"split\":\"test\",\"mean_auroc\":" +
         std::to_string(auroc) + "}\n{\"event\":\"end\",\"step\":9}\n";
}

}  // namespace

TEST_CASE("a run that holds its lock runs, one that does not has died") {
  const ScratchFolder folder;
  const auto run = make_run(folder, "r", {}, "");
  {
    const RunLock lock(run);
    CHECK(summarize_run(run).state == "running");
  }
  CHECK(summarize_run(run).state == "died");
  CHECK(summary_text(summarize_run(run)).find("was it killed?") != std::string::npos);
  // Locks of another host may not reach here.
  folder.write("r/metrics.jsonl", "{\"event\":\"start\",\"step\":0,\"host\":\"elsewhere\"}\n");
  CHECK(summarize_run(run).state == "running");
}

TEST_CASE("lines of other types than a run writes are skipped") {
  const ScratchFolder folder;
  const auto run = make_run(
      folder, "r", {},
      "{\"event\":\"train\",\"step\":3,\"loss\":0.5}\n"
      "{\"event\":\"train\",\"step\":\"x\"}\n{\"event\":7,\"step\":9}\n"
      "{\"event\":\"train\",\"step\":1e300}\n{\"event\":\"start\",\"host\":[]}\n"
      "{\"event\":\"ranks\",\"own_ms_per_step\":{\"x\":1,\"0\":null,\"1\":\"y\"}}\n"
      "{\"event\":\"straggler\",\"rank\":{}}\n{\"event\":\"error\",\"exit_code\":\"no\"}\n");
  folder.write("r/postmortem.json", "{\"sentence\":[],\"all_ranks\":[4]}");
  const RunLock lock(run);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.step == 3);
  CHECK(summary.loss == 0.5);
  CHECK(summary.state == "running");
  CHECK(summary.stragglers.empty());
}

TEST_CASE("a run that ended by an error says which; the next start takes it back") {
  const ScratchFolder folder;
  const std::string error =
      "{\"event\":\"error\",\"step\":4,\"exit_code\":3,\"sentence\":\"data are gone\"}\n";
  const auto run = make_run(folder, "r", {}, error);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.state == "failed");
  CHECK(summary_text(summary).find("data are gone (exit 3)") != std::string::npos);
  CHECK(summary_json(summary).find("\"exit_code\":3") != std::string::npos);
  make_run(folder, "r", {}, test_line(0.7) + error);
  CHECK(summarize_run(run).state == "finished");
  make_run(folder, "r", {}, error + "{\"event\":\"restart\",\"step\":2}\n");
  const RunLock lock(run);
  CHECK(summarize_run(run).state == "running");
  CHECK(summarize_run(run).error.empty());
}

TEST_CASE("settings are compared by the test score of the checkpoint that each seed chose") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (int seed = 1; seed <= 3; ++seed) {
    Config config;
    config.run.seed = seed;
    // checkpoint.best: loss chose the first; the larger second AUROC is noise.
    runs.push_back(summarize_run(make_run(folder, "r" + std::to_string(seed), config,
                                          val_line(3, 0.70, true) + val_line(6, 0.99, false) +
                                              (seed < 3 ? test_line(0.6 + 0.1 * seed) : ""))));
  }
  const auto groups = compare_runs(runs);
  REQUIRE(groups.size() == 1);
  CHECK((groups[0].test.count == 2 && groups[0].val.count == 3));
  CHECK(groups[0].test.mean == Approx(0.75));
  CHECK(groups[0].test.sd == Approx(std::sqrt(0.005)));
  CHECK(groups[0].val.mean == Approx(0.70));
  CHECK(runs[0].best_step == 3);
  CHECK(comparison_text(runs).find("0.7500 ± 0.0707 (n = 2)") != std::string::npos);
}

TEST_CASE("a folder that cannot be looked at is an error of its own") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");  // ELOOP, for root too
  for (const std::string error :
       {error_of<CheckpointError>([&] { find_runs(folder / "loop"); }),
        error_of<CheckpointError>([&] { summarize_run(folder / "loop"); })})
    CHECK(error.find("Too many levels of symbolic links. Hint: ask the owner") !=
          std::string::npos);
}
