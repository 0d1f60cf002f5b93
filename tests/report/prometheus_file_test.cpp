#include "chexnet/report/prometheus_file.hpp"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "chexnet/config/load.hpp"
#include "chexnet/core/error.hpp"
#include "chexnet/core/read_file.hpp"
#include "chexnet/launch/run_lock.hpp"
#include "chexnet/report/metrics_log.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

bool file_holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<fs::path> pages_in(const fs::path& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(folder))
    pages.push_back(entry.path());
  return pages;
}

std::string only_page(const fs::path& folder) {
  const auto pages = pages_in(folder);
  REQUIRE(pages.size() == 1);
  return read_text(pages.front());
}

RunConfig asks_for(const fs::path& node) {
  RunConfig run;
  run.prometheus = node.string();
  return run;
}

// A run folder that asks for a file in `folder`/node.
fs::path make_followed_run(const ScratchFolder& folder) {
  Config config;
  config.train.batch = 8;
  config.run = asks_for(folder / "node");
  fs::create_directory(folder / "node");
  folder.write("r/config.yaml", config_yaml(config));
  return folder / "r";
}

}  // namespace

TEST_CASE("a run's file follows its events") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  const RunLock lock(run);
  MetricsLog log(run, {});
  log.show_in(std::make_unique<PrometheusFile>(asks_for(folder / "node"), run));
  log.write("start", 0, {{"total_steps", int64_t{100}}, {"ranks", int64_t{2}}});
  CHECK(file_holds(only_page(folder / "node"), "planned_steps"));
  log.write("train", 10, {{"loss", 0.5}, {"images_per_s", 20.0}});
  CHECK(file_holds(only_page(folder / "node"),
                   "_step{run=\"r\",folder=\"" + run.string() + "\"} 0\n"));
  log.write("val", 10, {{"mean_auroc", 0.75}, {"best", "yes"}});
  const std::string page = only_page(folder / "node");
  CHECK(file_holds(page,
                   "_step{run=\"r\",folder=\"" + run.string() + "\"} 10\n"));
  // 90 steps of 8 images, 20 a second.
  CHECK(file_holds(page, "remaining_seconds{run=\"r\",folder=\"" +
                             run.string() + "\"} 36\n"));
  CHECK(file_holds(page, "validation_auroc{run=\"r\",folder=\"" + run.string() +
                             "\"} 0.75\n"));
  CHECK(file_holds(page, "state=\"running\"} 1\n"));
  folder.write("r/checkpoints/step-00000010/state.json", "{}");
  fs::create_directory_symlink("step-00000010", run / "checkpoints/last");
  log.write("checkpoint", 10, {});
  CHECK(
      file_holds(only_page(folder / "node"), "checkpoint_timestamp_seconds{"));
  log.write("end", 10, {});
  CHECK(file_holds(only_page(folder / "node"), "state=\"finished\"} 1\n"));
}

TEST_CASE("who reads the files is another user, and sees no other file") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  const mode_t before = umask(0077);
  MetricsLog log(run, {});
  log.show_in(std::make_unique<PrometheusFile>(asks_for(folder / "node"), run));
  log.write("start", 0, {});
  umask(before);
  const auto pages = pages_in(folder / "node");
  REQUIRE(pages.size() == 1);
  CHECK(pages.front().extension() == ".prom");
  struct stat info {};
  REQUIRE(stat(pages.front().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0644);
}

TEST_CASE("a run that ended by an error says so in its file") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  MetricsLog log(run, {});
  log.write("start", 0, {});
  write_error_event(run, 3, "the data are gone");
  const std::string page = only_page(folder / "node");
  CHECK(file_holds(page, "state=\"failed\"} 1\n"));
  CHECK(file_holds(page,
                   "exit_code{run=\"r\",folder=\"" + run.string() + "\"} 3"));
}

TEST_CASE("a run whose ranks were killed says so in its file") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  {
    MetricsLog log(run, {});
    log.show_in(
        std::make_unique<PrometheusFile>(asks_for(folder / "node"), run));
    log.write("start", 0, {});
  }
  folder.write("r/postmortem.json",
               "{\"cause\":\"died\",\"exit_code\":5,\"sentence\":\"Rank 1 "
               "died\",\"step\":3,\"ranks\":[1],\"all_ranks\":[]}");
  renew_prometheus_file(run);
  CHECK(file_holds(only_page(folder / "node"), "state=\"aborted\"} 1\n"));
  // Rank 0 may be on another host than its parent, which has no such folder.
  fs::remove_all(folder / "node");
  renew_prometheus_file(run);
  CHECK_FALSE(fs::exists(folder / "node"));
}

TEST_CASE("a folder that is not there is refused before a run begins") {
  const ScratchFolder folder;
  CHECK_THROWS_AS(PrometheusFile(asks_for(folder / "absent"), folder / "r"),
                  ConfigError);
}

TEST_CASE("a file that cannot be written ends no run") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  MetricsLog log(run, {});
  log.show_in(std::make_unique<PrometheusFile>(asks_for(folder / "node"), run));
  fs::remove(folder / "node");
  log.write("start", 0, {});
  log.write("val", 1, {});
  CHECK(fs::exists(run / "metrics.jsonl"));
}

TEST_CASE("files of runs whose folders are gone are removed, and no others") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  const fs::path node = folder / "node";
  const auto show = [&](const fs::path& shown) {
    PrometheusFile(asks_for(node), shown).take({{"event", "start"}});
  };
  fs::create_directory(folder / "odd");
  fs::copy(run, folder / "odd/a\"b\nc\\");
  for (const fs::path& shown : {run, folder / "odd/a\"b\nc\\"}) show(shown);
  CHECK(pages_in(node).size() == 2);
  folder.write("node/other.prom", "up 1\n");
  folder.write("node/chexnet_train_r_00000000.prom",  // of no run of ours
               "chexnet_train_step{run=\"r\",folder=\"/gone\"} 1\n");
  folder.write("node/chexnet_train_torn.prom", "chexnet_train_step{run=");
  fs::create_symlink("nowhere", node / "chexnet_train_link.prom");

  show(run);
  CHECK(pages_in(node).size() == 6);
  fs::remove_all(folder / "odd");
  show(run);
  CHECK(pages_in(node).size() == 5);
  CHECK(fs::exists(node / "other.prom"));
}

TEST_CASE("no event and no config ends a run by its file") {
  const ScratchFolder folder;
  const auto run = make_followed_run(folder);
  PrometheusFile file(asks_for(folder / "node"), run);
  const std::string config = read_text(run / "config.yaml");
  folder.write("r/config.yaml", "train: [");
  file.take({{"event", "start"}});
  CHECK(pages_in(folder / "node").empty());
  folder.write("r/config.yaml", config);
  file.take({{"event", "start"}});
  file.take({{"event", "val"}, {"step", "no number"}, {"best", 7}});
  file.take({{"event", "end"}});
  CHECK(file_holds(only_page(folder / "node"), "state=\"finished\"} 1\n"));
}
