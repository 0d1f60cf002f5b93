#include "chexnet/report/followed_run.hpp"

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/files.hpp"
#include "chexnet/report/openmetrics.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

fs::path make_run(const ScratchFolder& folder, const std::string& name) {
  Config config;
  config.train.batch = 8;
  folder.write(name + "/config.yaml", config_yaml(config));
  folder.write(name + "/metrics.jsonl",
               "{\"event\":\"start\",\"step\":0,\"total_steps\":100}\n");
  return folder / name;
}

std::string train_line(int step, double images_per_s = 20) {
  return "{\"event\":\"train\",\"step\":" + std::to_string(step) +
         ",\"images_per_s\":" + std::to_string(images_per_s) + "}\n";
}

std::vector<std::string> names(const std::vector<RunSummary>& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a run that is followed is what a fresh look finds") {
  const ScratchFolder folder;
  const auto path = make_run(folder, "r");
  const std::string start = read_text(path / "metrics.jsonl");
  FollowedRun run(path);
  const auto write = [&](const std::string& lines) {
    folder.write("r/metrics.jsonl", lines);
    RunSummary now = run.now();
    CHECK(openmetrics_text({now}) == openmetrics_text({summarize_run(path)}));
    return now;
  };
  CHECK(write(start).step == 0);
  std::string lines = start;
  for (int step = 1; step <= 40; ++step) {
    lines += train_line(step);
    CHECK(write(lines).step == step);
  }
  CHECK(write(lines).seconds_to_go == 24);  // 60 steps of 8 images, 20 a second

  const std::string line = train_line(41);
  CHECK(write(lines + line.substr(0, 9)).step == 40);  // torn
  CHECK(write(lines + line).step == 41);

  // A resume from step 3: shorter, then longer than what was read.
  std::string resumed = start + train_line(1) + train_line(2) + train_line(3) +
                        "{\"event\":\"restart\",\"step\":3}\n";
  CHECK(write(resumed).restarts == 1);
  for (int step = 4; step <= 60; ++step) resumed += train_line(step, 30);
  const RunSummary again = write(resumed);
  CHECK(again.step == 60);
  CHECK(again.restarts == 1);
  for (int step = 4; step <= 60; ++step) resumed += train_line(step, 40);
  resumed.replace(resumed.find(":30"), 3, ":50");
  CHECK(write(resumed).step == 60);

  fs::remove(path / "metrics.jsonl");
  CHECK(run.now().state == "not started");
  CHECK(run.now().step == 0);
  CHECK_FALSE(run.now().written_s);
  CHECK(write(start).total_steps == 100);
}

TEST_CASE("a run that is followed has the config that it has now") {
  const ScratchFolder folder;
  const auto path = make_run(folder, "r");
  folder.write("r/metrics.jsonl",
               read_text(path / "metrics.jsonl") + train_line(50));
  FollowedRun run(path);
  CHECK(run.now().seconds_to_go == 20);
  Config config;
  config.train.batch = 16;
  folder.write("r/config.yaml", config_yaml(config));
  CHECK(run.now().seconds_to_go == 40);
  fs::remove(path / "config.yaml");
  CHECK_THROWS_AS(run.now(), CheckpointError);
}

TEST_CASE(
    "runs come and go while they are followed, and one that cannot be "
    "read keeps no other back") {
  const ScratchFolder folder;
  fs::create_directory(folder / "runs");
  FollowedRuns runs({(folder / "runs").string(),
                     (folder / "runs/../runs/a").string(),
                     (folder / "elsewhere").string()});
  CHECK(runs.now().empty());
  for (const char* name : {"runs/b", "runs/a", "runs/c", "elsewhere"})
    make_run(folder, name);
  CHECK(names(runs.now()) == Names{"a", "b", "c", "elsewhere"});
  folder.write("runs/b/config.yaml", "train: [");
  fs::remove_all(folder / "runs/c");
  fs::remove(folder / "elsewhere/metrics.jsonl");
  fs::create_directory(folder / "elsewhere/metrics.jsonl");
  CHECK(names(runs.now()) == Names{"a"});
  fs::remove_all(folder / "runs");
  CHECK(runs.now().empty());
  make_run(folder, "runs/b");
  CHECK(names(runs.now()) == Names{"b"});
}
