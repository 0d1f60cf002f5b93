#include "chexnet/report/run_summary.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "chexnet/config/load.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/launch/environment.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/openmetrics.hpp"
#include "chexnet/report/run_comparison.hpp"
#include "chexnet/report/waiting_run.hpp"
#include "report/history.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// A run folder with a start on this host, and further lines.
std::filesystem::path make_run(const ScratchFolder& folder,
                               const std::string& name, const Config& config,
                               const std::string& lines) {
  folder.write(name + "/config.yaml", config_yaml(config));
  folder.write(name + "/metrics.jsonl",
               "{\"event\":\"start\",\"step\":0,\"host\":\"" + host_name() +
                   "\"}\n" + lines);
  return folder / name;
}

std::string val_line(int step, double auroc, bool best,
                     const std::string& scored_on = "") {
  return "{\"event\":\"val\",\"step\":" + std::to_string(step) +
         ",\"mean_auroc\":" + std::to_string(auroc) +
         ",\"validation_sha256\":\"" + scored_on + "\",\"best\":\"" +
         (best ? "yes" : "no") + "\"}\n";
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
  CHECK(summary_text(summarize_run(run)).find("was it killed?") !=
        std::string::npos);
  // Locks of another host may not reach here.
  folder.write("r/metrics.jsonl",
               "{\"event\":\"start\",\"step\":0,\"host\":\"elsewhere\"}\n");
  CHECK(summarize_run(run).state == "running");
}

TEST_CASE("a run whose process a signal has stopped is silent, and told how") {
  const ScratchFolder folder;
  const auto run = make_run(folder, "r", {}, "");
  const pid_t process = ::fork();
  if (process == 0) {
    for (;;) ::pause();
  }
  folder.write("r/.lock",
               "process " + std::to_string(process) + " on " + host_name());
  const int held = ::open((run / ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  CHECK(summarize_run(run).state == "running");
  REQUIRE(::kill(process, SIGSTOP) == 0);
  REQUIRE(::waitpid(process, nullptr, WUNTRACED) == process);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.state == "silent");
  CHECK(summary_text(summary).find("kill -CONT " + std::to_string(process)) !=
        std::string::npos);
  ::close(held);
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

TEST_CASE("a copy of a killed run without its lock does not run") {
  const ScratchFolder folder;
  CHECK(summarize_run(make_run(folder, "r", {}, "")).state == "died");
}

TEST_CASE("a run that stopped before its first log line has its step") {
  const ScratchFolder folder;
  const auto run =
      make_run(folder, "r", {}, "{\"event\":\"stop\",\"step\":7}\n");
  CHECK(summarize_run(run).step == 7);
}

TEST_CASE("lines of other types than a run writes are skipped") {
  const ScratchFolder folder;
  const auto run = make_run(
      folder, "r", {},
      "{\"event\":\"train\",\"step\":3,\"loss\":0.5}\n"
      "{\"event\":\"train\",\"step\":\"x\"}\n{\"event\":7,\"step\":9}\n"
      "{\"event\":\"train\",\"step\":1e300}\n{\"event\":\"start\",\"host\":[]}"
      "\n"
      "{\"event\":\"ranks\",\"own_ms_per_step\":{\"x\":1,\"0\":null,\"1\":"
      "\"y\"}}\n"
      "{\"event\":\"straggler\",\"rank\":{}}\n{\"event\":\"error\",\"exit_"
      "code\":\"no\"}\n");
  folder.write("r/postmortem.json", "{\"sentence\":[],\"all_ranks\":[4]}");
  const RunLock lock(run);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.step == 3);
  CHECK(summary.loss == 0.5);
  CHECK(summary.state == "running");
  CHECK(summary.stragglers.empty());
}

TEST_CASE("what metrics.jsonl does not tell is said, not shown as zeros") {
  const ScratchFolder folder;
  const auto run = make_run(folder, "r", {}, "17\n{\"event\":\"tr\n");
  CHECK(summary_text(summarize_run(run))
            .find("2 damaged lines of metrics.jsonl") != std::string::npos);
  for (const char* text : {"", "damaged\n"}) {
    folder.write("r/metrics.jsonl", text);
    const std::string shown = summary_text(summarize_run(run));
    CHECK(shown.find("step, speed and scores: metrics.jsonl is empty") !=
          std::string::npos);
    CHECK(shown.find("images/s") == std::string::npos);
    CHECK(comparison_text({summarize_run(run)}).find("0.0") ==
          std::string::npos);
    const auto json = nlohmann::json::parse(summary_json(summarize_run(run)));
    for (const char* key :
         {"step", "total_steps", "epoch", "ranks", "restarts", "images_per_s",
          "data_wait_fraction", "slowest_rank", "slowest_ratio"})
      CHECK(json.at(key).is_null());
    CHECK(openmetrics_text({summarize_run(run)}).find("train_step{") ==
          std::string::npos);
  }
  // It has begun, and no line says yet how fast it is.
  const auto begun = summarize_run(make_run(folder, "r", {}, ""));
  CHECK(summary_text(begun).find("images/s") == std::string::npos);
  const auto json = nlohmann::json::parse(summary_json(begun));
  CHECK(json.at("step") == 0);
  CHECK(json.at("images_per_s").is_null());
}

TEST_CASE("a run whose metrics.jsonl lost its end says that it has results") {
  const ScratchFolder folder;
  const auto run = make_run(folder, "r", {}, "");
  folder.write("r/results.json", "{}");
  const std::string text = summary_text(summarize_run(run));
  CHECK(text.find("so the run ended once: a later start went on, or "
                  "metrics.jsonl lost its end") != std::string::npos);
  make_run(folder, "r", {}, test_line(0.7));
  CHECK(summary_text(summarize_run(run)).find("ended once") ==
        std::string::npos);
}

TEST_CASE("a network that gives all images one score is marked") {
  const ScratchFolder folder;
  const auto val = [](const std::string& aurocs) {
    return "{\"event\":\"val\",\"step\":3,\"best\":\"yes\",\"mean_auroc\":"
           "0.5,\"auroc\":{" +
           aurocs + "}}\n" + test_line(0.5);
  };
  const auto collapsed = summarize_run(make_run(
      folder, "flat", {}, val("\"Mass\":0.5,\"Edema\":null,\"Hernia\":0.5")));
  const auto other = summarize_run(
      make_run(folder, "other", {}, val("\"Mass\":0.4,\"Edema\":0.6")));
  CHECK(summary_text(collapsed).find("exactly 0.5") != std::string::npos);
  CHECK(summary_text(other).find("exactly 0.5") == std::string::npos);
  const std::string text = comparison_text({collapsed, other});
  CHECK(text.find("flat has collapsed: each finding's") != std::string::npos);
  CHECK(text.find("other has collapsed") == std::string::npos);
}

TEST_CASE("what a terminal would obey is shown as text") {
  const ScratchFolder folder;
  const auto run =
      make_run(folder, "r", {},
               "{\"event\":\"start\",\"host\":\"\\u001b[31m\\nstate\",\"job\":"
               "\"\\u0007\"}\n");
  const RunSummary summary = summarize_run(run);
  CHECK(summary.host == "\\x1b[31m\\x0astate");
  CHECK(summary.job == "\\x07");
}

TEST_CASE("an aborted run has the exit code of its post-mortem") {
  const ScratchFolder folder;
  const auto run = make_run(folder, "r", {},
                            "{\"event\":\"train\",\"step\":3,\"loss\":0.5}\n");
  folder.write("r/postmortem.json",
               "{\"cause\":\"died\",\"exit_code\":5,\"sentence\":\"Rank 1 "
               "died\",\"step\":3,\"ranks\":[1],\"all_ranks\":[]}");
  const RunSummary summary = summarize_run(run);
  CHECK(summary.state == "aborted");
  CHECK(summary.exit_code == 5);
  CHECK(summary.last_words == "Rank 1 died");
}

TEST_CASE("the epoch shown is the one at work, of a whole run the last") {
  RunSummary run;
  run.total_steps = 20;
  run.step = 19;
  run.epoch = 0;
  CHECK(summary_text(run).find("19 of 20, epoch 1") != std::string::npos);
  run.step = 20;
  run.epoch = 1;
  run.epoch_end_step = 20;
  CHECK(summary_text(run).find("20 of 20, epoch 1") != std::string::npos);
  run.epoch_end_step = 15;  // train.max_steps ends it within the second
  CHECK(summary_text(run).find("20 of 20, epoch 2") != std::string::npos);
}

TEST_CASE(
    "a run that ended by an error says which; the next start takes it back") {
  const ScratchFolder folder;
  const std::string error =
      "{\"event\":\"error\",\"step\":4,\"exit_code\":3,\"sentence\":\"data are "
      "gone\"}\n";
  const auto run = make_run(folder, "r", {}, error);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.state == "failed");
  CHECK(summary_text(summary).find("data are gone (exit 3)") !=
        std::string::npos);
  CHECK(summary_json(summary).find("\"exit_code\":3") != std::string::npos);
  make_run(folder, "r", {}, test_line(0.7) + error);
  CHECK(summarize_run(run).state == "finished");
  make_run(folder, "r", {}, error + "{\"event\":\"restart\",\"step\":2}\n");
  const RunLock lock(run);
  CHECK(summarize_run(run).state == "running");
  CHECK(summarize_run(run).error.empty());
}

TEST_CASE("settings are compared by the checkpoint that each seed chose") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (int seed = 1; seed <= 3; ++seed) {
    Config config;
    config.run.seed = seed;
    // checkpoint.best: loss chose the first; the larger second AUROC is noise.
    runs.push_back(summarize_run(
        make_run(folder, "r" + std::to_string(seed), config,
                 val_line(3, 0.70, true) + val_line(6, 0.99, false) +
                     (seed < 3 ? test_line(0.6 + 0.1 * seed) : ""))));
  }
  runs[2].state = "died";
  const auto [groups, remarks, same_validation] = compare_runs(runs);
  REQUIRE(groups.size() == 1);
  CHECK((groups[0].test.count == 2 && groups[0].val.count == 2));
  CHECK(remarks == Strings{"not counted, because not finished: r3 (died)"});
  CHECK(groups[0].test.mean == Approx(0.75));
  CHECK(groups[0].test.sd == Approx(std::sqrt(0.005)));
  CHECK(groups[0].val.mean == Approx(0.70));
  CHECK(runs[0].best_step == 3);
  CHECK(comparison_text(runs).find("0.7500 ± 0.0707 (n = 2)") !=
        std::string::npos);
}

TEST_CASE("validation chooses a setting, whose test score alone is shown") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (int i = 0; i < 4; ++i) {
    Config config;
    config.run.seed = i % 2;
    config.train.lr = i < 2 ? 0.5 : 0.25;
    // The second setting is better on validation, the first on test.
    runs.push_back(
        summarize_run(make_run(folder, "r" + std::to_string(i), config,
                               val_line(3, i < 2 ? 0.70 : 0.80, true) +
                                   test_line(i < 2 ? 0.9125 : 0.6125))));
  }
  const std::string text = comparison_text(runs);
  CHECK(text.find("train.lr=0.25") < text.find("train.lr=0.5 "));
  CHECK(text.find("best by validation: train.lr=0.25; its test AUROC 0.6125 ± "
                  "0.0000 (n = 2)") != std::string::npos);
  CHECK(text.find("0.9125") == std::string::npos);
  // While a run goes on, another setting may still be chosen.
  runs[0].state = "running";
  CHECK(comparison_text(runs).find("0.6125") == std::string::npos);
  CHECK(comparison_text(runs).find(
            "its test AUROC is shown when no run goes on (1 run may)") !=
        std::string::npos);
}

TEST_CASE("folds of one setting are one training") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (const char* lr : {"0.001", "0.01"})
    for (int fold = 1; fold <= 2; ++fold) {
      Config config;
      config.train.lr = std::stod(lr);
      config.data.fold = {fold, 2};
      runs.push_back(summarize_run(
          make_run(folder, lr + std::to_string(fold), config,
                   val_line(5, 0.6 + 0.1 * fold, true, std::to_string(fold)) +
                       test_line(0.5))));
    }
  const auto [groups, remarks, same_validation] = compare_runs(runs);
  CHECK(same_validation);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].settings == Strings{"train.lr=0.001"});
  CHECK(groups[0].val.count == 2);
  CHECK(groups[0].val.mean == Approx(0.75));
  CHECK(comparison_text(runs).find(
            "on validation: 0.000 in the mean of 2 folds of both, which tell "
            "no interval") != std::string::npos);
  // A fold that is missing leaves other images.
  runs.pop_back();
  CHECK_FALSE(compare_runs(runs).same_validation);
}

TEST_CASE("a copy of a run is no further seed") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (const char* name : {"r1", "copy", "r2"}) {
    Config config;
    config.run.seed = name == std::string("r2") ? 2 : 1;
    config.run.log_every = 1 + static_cast<int64_t>(runs.size());
    config.launch.threads = config.run.log_every;
    runs.push_back(summarize_run(make_run(
        folder, name, config, val_line(3, 0.7, true) + test_line(0.8))));
  }
  const auto [groups, remarks, same_validation] = compare_runs(runs);
  REQUIRE(groups.size() == 1);  // no result depends on what differs
  CHECK(groups[0].runs == std::vector<const RunSummary*>{&runs[0], &runs[2]});
  CHECK(remarks ==
        Strings{"copy is not counted: it has the setting and the seed of r1"});
  CHECK(comparison_text(runs).find("copy is not counted") != std::string::npos);
  std::set<std::filesystem::path> seen;
  CHECK(is_new_run(folder / "r1", seen));
  CHECK_FALSE(is_new_run(folder / "r2/../r1/", seen));
}

TEST_CASE("validation on other images ranks no settings") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (int seed = 0; seed < 2; ++seed) {
    Config config;
    config.data.split_seed = static_cast<uint64_t>(seed);
    runs.push_back(summarize_run(
        make_run(folder, "split" + std::to_string(seed), config,
                 val_line(3, 0.7 + 0.1 * seed, true, std::to_string(seed)) +
                     test_line(0.9125))));
  }
  const std::string text = comparison_text(runs);
  CHECK(text.find("validation does not rank these settings") !=
        std::string::npos);
  CHECK(text.find("best") == std::string::npos);
  CHECK(text.find("0.9125") == std::string::npos);
}

TEST_CASE("a run that is validated on other images has another best step") {
  const ScratchFolder folder;
  const RunSummary run = summarize_run(
      make_run(folder, "r", {},
               val_line(3, 0.9, true, "a") + val_line(6, 0.7, false, "b")));
  CHECK(run.best_step == -1);
  CHECK(run.val_auroc.value == Approx(0.7));
}

TEST_CASE("a number of ranks is a setting where a BatchNorm depends on it") {
  const ScratchFolder folder;
  for (const bool synchronized : {false, true}) {
    std::vector<RunSummary> runs;
    for (int ranks = 1; ranks <= 2; ++ranks) {
      Config config;
      config.model.sync_batchnorm = synchronized;
      runs.push_back(summarize_run(
          make_run(folder, "r" + std::to_string(ranks), config,
                   "{\"event\":\"restart\",\"step\":0,\"ranks\":" +
                       std::to_string(ranks) + "}\n" + test_line(0.8))));
    }
    CHECK(compare_runs(runs).groups.size() == (synchronized ? 1 : 2));
  }
}

TEST_CASE("a run that lost the record of its start differs in no setting") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (const std::string ranks : {"0", "2"})
    runs.push_back(summarize_run(
        make_run(folder, "r" + ranks, {},
                 "{\"event\":\"restart\",\"step\":0,\"ranks\":" + ranks +
                     "}\n" + test_line(0.8))));
  const RunGroups compared = compare_runs(runs);
  CHECK(compared.groups.size() == 1);
  CHECK(compared.groups.front().settings.empty());
}

TEST_CASE("a rough mean AUROC is called so wherever status shows it") {
  const ScratchFolder folder;
  const std::string rough =
      "\"mean_auroc\":0.75,\"findings_in_mean\":2,\"mean_is_rough\":\"yes\"";
  std::vector<RunSummary> runs;
  for (int seed = 1; seed <= 2; ++seed) {
    Config config;
    config.run.seed = seed;
    runs.push_back(summarize_run(
        make_run(folder, "r" + std::to_string(seed), config,
                 "{\"event\":\"val\",\"step\":3,\"best\":\"yes\"," + rough +
                     "}\n{\"event\":\"final\",\"split\":\"test\"," + rough +
                     "}\n{\"event\":\"end\",\"step\":9}\n")));
  }
  const std::string text = comparison_text(runs);
  const std::string groups = text.substr(text.find("settings that differ"));
  CHECK(groups.find(" 2 *\n") != std::string::npos);
  CHECK(text.find("test AUROC of these 0.7500 ± 0.0000 (n = 2) over 2 "
                  "findings, none with ten positives") != std::string::npos);
  CHECK(text.find("\n* rough: no finding has ten positives") !=
        std::string::npos);
  CHECK(summary_text(runs[0]).find("0.750 over 2 findings, none with ten") !=
        std::string::npos);
  const auto json = nlohmann::json::parse(summary_json(runs[0]));
  CHECK(json["validation"]["mean_is_rough"] == true);
  CHECK(json["final"]["test"]["findings_in_mean"] == 2);
}

TEST_CASE("a mean AUROC has its interval in status") {
  const ScratchFolder folder;
  const RunSummary run = summarize_run(make_run(
      folder, "r", {},
      "{\"event\":\"val\",\"step\":3,\"best\":\"yes\",\"mean_auroc\":0.75,"
      "\"mean_auroc_low\":0.7,\"mean_auroc_high\":0.8}\n"
      "{\"event\":\"final\",\"step\":9,\"split\":\"test\",\"mean_auroc\":"
      "0.625,\"mean_auroc_low\":0.5,\"mean_auroc_high\":0.7}\n"));
  const std::string text = summary_text(run);
  CHECK(text.find("0.750 (0.700 - 0.800); at the best step") !=
        std::string::npos);
  RunSummary ended = run;
  ended.final_auroc["val"] = run.val_auroc;
  const std::string once = summary_text(ended);
  CHECK(once.find("final AUROC, val") < once.find("final AUROC, test"));
  CHECK(once.find("final AUROC, val") != std::string::npos);
  CHECK(once.find("validation AUROC") == std::string::npos);
  CHECK(text.find("0.625 (0.500 - 0.700)") != std::string::npos);
  const auto json = nlohmann::json::parse(summary_json(run));
  CHECK(json["validation"]["mean_auroc_interval"] == nlohmann::json{0.7, 0.8});
  CHECK(json["final"]["test"]["mean_auroc_interval"] ==
        nlohmann::json{0.5, 0.7});
}

TEST_CASE("a folder that cannot be looked at is an error of its own") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("loop",
                                  folder / "loop");  // ELOOP, for root too
  for (const std::string& error :
       {error_of<CheckpointError>([&] { find_runs(folder / "loop"); }),
        error_of<CheckpointError>([&] { summarize_run(folder / "loop"); })})
    CHECK(
        error.find("Too many levels of symbolic links. Hint: ask the owner") !=
        std::string::npos);
}

TEST_CASE(
    "a summary holds the last train line, the best evaluation and the slowest "
    "rank") {
  const ScratchFolder folder;
  Config config;
  config.train.batch = 10;
  const auto run =
      make_run(folder, "r", config,
               "{\"event\":\"train\",\"step\":1,\"epoch\":0,\"loss\":0.9,"
               "\"images_per_s\":5}\n"
               "{\"event\":\"train\",\"step\":6,\"epoch\":1,\"loss\":0.5,"
               "\"images_per_s\":20,"
               "\"steps\":4,\"data_wait_s\":0.5}\n" +
                   val_line(3, 0.6, true) + val_line(6, 0.7, false) +
                   "{\"event\":\"ranks\",\"step\":6,\"own_ms_per_step\":"
                   "{\"0\":100,\"1\":300,\"2\":150,\"x\":900,\"3\":null}}\n"
                   "{\"event\":\"straggler\",\"step\":6,\"rank\":1,\"host\":"
                   "\"h\",\"cause\":\"slow "
                   "disk\"}\n");
  const RunLock lock(run);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.step == 6);
  CHECK(summary.epoch == 1);
  CHECK(summary.epoch_end_step == 6);
  CHECK(summary.loss == 0.5);
  // 4 steps of 10 images at 20 images/s are 2 s; a quarter of it was waiting.
  CHECK(summary.data_wait_fraction == Approx(0.25));
  CHECK(summary.best_step == 3);
  CHECK(summary.val_auroc.value == Approx(0.6));
  CHECK(summary.slowest_rank == 1);
  CHECK(summary.slowest_ratio == Approx(2));  // 300 against a median of 150
  CHECK(summary.stragglers ==
        std::vector<std::string>{"rank 1 on h: slow disk"});
  CHECK(summary_text(summary).find("at the best step, 3") != std::string::npos);
}

TEST_CASE("a summary tells how busy the GPUs are, also of a killed run") {
  const ScratchFolder folder;
  Config config;
  config.train.batch = 10;
  const std::string train =
      "{\"event\":\"train\",\"step\":6,\"images\":60,\"steps\":6,"
      "\"images_per_s\":2000}\n";
  const auto run =
      make_run(folder, "r", config,
               train +
                   "{\"event\":\"system\",\"step\":6,\"gpu_utilization\":"
                   "{\"0\":95,\"1\":71,\"2\":null,\"x\":1},"
                   "\"gpu_memory_bytes\":{\"0\":1073741824,\"1\":2147483648},"
                   "\"gpu_power_w\":{\"0\":500,\"1\":300}}\n");
  const RunSummary summary = summarize_run(run);
  REQUIRE(summary.gpu);
  CHECK(summary.gpu->gpus == 2);
  CHECK(summary.joules_per_image() == Approx(0.4));
  CHECK(summary_text(summary).find(
            "83 % busy (rank 1 least, 71 %), at most 2.0 GiB each, 800 W, "
            "0.40 J an image") != std::string::npos);
  const auto json = nlohmann::json::parse(summary_json(summary));
  CHECK(json["gpu"]["utilization"] == 83);
  CHECK(json["gpu"]["power_w"] == 800);
  CHECK(json["gpu"]["joules_per_image"].get<double>() == Approx(0.4));

  const RunSummary cpu = summarize_run(make_run(
      folder, "c", config,
      train + "{\"event\":\"system\",\"step\":6,\"rss_bytes\":{\"0\":5}}\n"));
  CHECK_FALSE(cpu.gpu);
  CHECK(nlohmann::json::parse(summary_json(cpu))["gpu"].is_null());
  CHECK(summary_text(cpu).find("GPU") == std::string::npos);
}

TEST_CASE("rate and waits of a resume's first line are of its own steps") {
  const ScratchFolder folder;
  Config config;
  config.train.batch = 10;
  const RunSummary run = summarize_run(
      make_run(folder, "r", config,
               "{\"event\":\"restart\",\"step\":6}\n"
               "{\"event\":\"train\",\"step\":10,\"images\":100,\"steps\":10,"
               "\"images_per_s\":20,\"data_wait_s\":0.5}\n"));
  // 4 steps of 10 images at 20 images/s are 2 s.
  CHECK(run.waits.seconds == Approx(2));
  CHECK(run.waits.steps == 4);
  CHECK(run.data_wait_fraction == Approx(0.25));
  const auto waits = history_of(folder.path() / "r").data_wait.points;
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].second == Approx(125));  // ms for each of four steps
}

TEST_CASE("the time to go follows from the steps that are left") {
  const ScratchFolder folder;
  Config config;
  config.train.batch = 10;
  const auto run = make_run(
      folder, "r", config,
      "{\"event\":\"restart\",\"step\":0,\"total_steps\":100,\"ranks\":2}\n"
      "{\"event\":\"train\",\"step\":40,\"images_per_s\":20}\n");
  const RunLock lock(run);
  const RunSummary summary = summarize_run(run);
  CHECK(summary.seconds_to_go == Approx(30));
  CHECK(summary.ranks == 2);
  CHECK(summary.restarts == 1);
  CHECK(summary_json(summary).find("\"seconds_to_go\":30") !=
        std::string::npos);
}

TEST_CASE(
    "groups are named by the settings that differ, without name, folder and "
    "seed") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (int i = 0; i < 4; ++i) {
    Config config;
    config.run.seed = i;
    config.train.lr = i < 2 ? 0.5 : 0.25;
    runs.push_back(summarize_run(make_run(folder, "r" + std::to_string(i),
                                          config, "{\"event\":\"end\"}\n")));
  }
  const auto groups = compare_runs(runs).groups;
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].settings == Strings{"train.lr=0.5"});
  CHECK(groups[1].settings == Strings{"train.lr=0.25"});
  CHECK((groups[0].runs.size() == 2 && groups[0].runs[1] == &runs[1]));
  CHECK(groups[0].test.count == 0);
  CHECK(comparison_text(runs).find("train.lr=0.25") != std::string::npos);
  // One run has nobody to be compared with.
  CHECK(comparison_text({runs[0]}).find("settings that differ") ==
        std::string::npos);
}

TEST_CASE("runs that differ in many settings have a line for each") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (int i = 0; i < 2; ++i) {
    Config config;
    config.data.images = {std::string(60, static_cast<char>('a' + i))};
    config.train.lr = i < 1 ? 0.5 : 0.25;
    config.train.accumulate = 1 + i;
    runs.push_back(summarize_run(make_run(folder, "r" + std::to_string(i),
                                          config, "{\"event\":\"end\"}\n")));
  }
  const std::string text = comparison_text(runs);
  CHECK(text.find("\ntrain.accumulate=2\n") != std::string::npos);
  CHECK(text.find("\ntrain.lr=0.25\n") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() < 160);
}

TEST_CASE("a finished run whose metrics.jsonl is empty is not counted") {
  const ScratchFolder folder;
  std::vector<RunSummary> runs;
  for (const char* name : {"a", "b"})
    runs.push_back(summarize_run(
        make_run(folder, name, {}, val_line(9, 0.8, true) + test_line(0.8))));
  for (auto& run : runs) run.config["run.seed"] = run.name;
  folder.write("c/config.yaml", config_yaml(Config()));
  folder.write("c/metrics.jsonl", "");
  folder.write("c/results.json", "{}");
  runs.push_back(summarize_run(folder / "c"));
  const std::string text = comparison_text(runs);
  CHECK(text.find("not counted, because metrics.jsonl is empty, damaged or not "
                  "there: c\n") != std::string::npos);
  CHECK(text.find("a has no results.json: `report --compare` leaves it out") !=
        std::string::npos);
  CHECK(text.find("c has no results.json") == std::string::npos);
  CHECK(text.find("(n = 2)") != std::string::npos);
  CHECK(text.find("(n = 3)") == std::string::npos);
  // Nothing is left to count.
  CHECK_FALSE(comparison_text({runs[2], runs[2]}).empty());
}

TEST_CASE("a run that a batch system has not begun waits, and is no error") {
  const ScratchFolder folder;
  make_run(folder, "sweep/a", {}, test_line(0.8));
  note_waiting_run(folder / "sweep/b", "4711");
  note_waiting_run(folder / "sweep/a", "4711");  // it has begun already
  const auto found = find_runs(folder / "sweep");
  REQUIRE(found.size() == 2);
  const std::vector<RunSummary> runs = {summarize_run(found[0]),
                                        summarize_run(found[1])};
  CHECK(runs[0].state == "finished");
  CHECK(runs[1].state == "waiting");
  CHECK(summary_text(runs[1]).find("4711") != std::string::npos);
  const std::string text = comparison_text(runs);
  const std::string row = text.substr(text.find("\nb ") + 1);
  CHECK(row.find("waiting") < row.find('\n'));
  CHECK(row.find_first_of("0123456789") == std::string::npos);
  CHECK(text.find("settings that differ") == std::string::npos);
  CHECK(openmetrics_text(runs).find("state=\"waiting\"} 1\n") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(summary_json(runs[1]))["job"] == "4711");
  // It begins.
  forget_waiting_run(folder / "sweep/b");
  const RunLock lock(make_run(folder, "sweep/b", {}, ""));
  CHECK(summarize_run(found[1]).state == "running");
}

TEST_CASE("runs are found directly below a folder, in order of name") {
  const ScratchFolder folder;
  for (const char* name : {"b", "a", "deep/c"}) make_run(folder, name, {}, "");
  folder.write("note/readme", "");
  folder.write("lost/metrics.jsonl", "{\"event\":\"end\",\"step\":9}\n");
  const auto log = (folder / "log.txt").string();
  set_log_file(log);
  const auto runs = find_runs(folder.path());
  close_log();
  CHECK(read_text(log).find("lost: has no config.yaml; this run is left out") !=
        std::string::npos);
  CHECK(read_text(log).find("deep: holds runs, which are left out") !=
        std::string::npos);
  CHECK(runs == std::vector<std::filesystem::path>{folder / "a", folder / "b"});
  CHECK(find_runs(folder / "a") ==
        std::vector<std::filesystem::path>{folder / "a"});
  for (const char* name : {"of/b/run", "of/a/run"})
    make_run(folder, name, {}, "");
  set_log_file(log);
  const std::string refusal =
      error_of<CheckpointError>([&] { find_runs(folder / "of"); });
  close_log();
  CHECK(refusal.ends_with(
      "of: holds no run, but folders of runs. Hint: name "
      "those: " +
      (folder / "of/a").string() + ", " + (folder / "of/b").string()));
  CHECK(read_text(log).find("of/a") == std::string::npos);
  CHECK(error_of<CheckpointError>([&] { find_runs(folder / "note"); })
            .starts_with("[run] " + (folder / "note").string() +
                         ": neither a run nor a folder of runs"));
}

TEST_CASE("a sweep ends with the best setting against the next, by seed") {
  const ScratchFolder folder;
  const auto told = [&](const std::vector<double>& slow,
                        const std::vector<double>& fast) {
    std::vector<RunSummary> runs;
    const auto add = [&](double rate, const std::vector<double>& scores) {
      for (size_t seed = 0; seed < scores.size(); ++seed) {
        Config config;
        config.train.lr = rate;
        config.run.seed = static_cast<int64_t>(seed);
        runs.push_back(summarize_run(make_run(
            folder, "r" + std::to_string(rate) + "s" + std::to_string(seed),
            config, val_line(3, scores[seed], true) + test_line(0.7))));
      }
    };
    add(0.001, slow);
    add(0.1, fast);
    return comparison_text(runs);
  };
  // Differences 0.01, 0.02, 0.03: the mean's deviation is 0.00577, t 4.303.
  CHECK(told({0.71, 0.73, 0.72}, {0.70, 0.71, 0.69})
            .find("train.lr=0.001 against train.lr=0.1, on validation: no "
                  "difference shown, 0.020 (-0.005 to 0.045, 95 % for other "
                  "seeds than these 3, on the same patients)\n") !=
        std::string::npos);
  CHECK(told({0.711, 0.721, 0.712}, {0.70, 0.71, 0.70})
            .find("on validation: higher, 0.011 (0.010 to 0.013, 95 %") !=
        std::string::npos);
  CHECK(told({0.71, 0.73}, {0.70, 0.71})
            .find("2 seeds of both tell no difference (submit --seeds 3)") !=
        std::string::npos);
}
