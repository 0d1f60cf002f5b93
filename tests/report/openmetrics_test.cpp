#include "chexnet/report/openmetrics.hpp"

#include <cmath>
#include <filesystem>

#include "support/catch.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a gauge stands once, with a line for each run") {
  RunSummary one, other;
  one.name = "one";
  one.folder = "/runs/one";
  one.state = "running";
  one.step = 12;
  one.has_events = other.has_events = true;
  one.loss = 0.25;
  other.name = "other";
  other.folder = "/runs/other";
  other.state = "failed";
  other.exit_code = 6;
  const std::string text = openmetrics_text({one, other});
  const std::string type = "# TYPE chexnet_train_step gauge\n";
  const auto at = text.find(type);
  REQUIRE(at != std::string::npos);
  CHECK(text.find(type, at + 1) == std::string::npos);
  CHECK(holds(
      text,
      type + "chexnet_train_step{run=\"one\",folder=\"/runs/one\"} 12\n"
             "chexnet_train_step{run=\"other\",folder=\"/runs/other\"} 0\n"));
  CHECK(holds(text,
              "chexnet_train_loss{run=\"one\",folder=\"/runs/one\"} "
              "0.25\n# HELP"));  // the other has none
  CHECK(holds(text,
              "state{run=\"one\",folder=\"/runs/one\",state=\"running\"} "
              "1\n"));
  CHECK(holds(text,
              "state{run=\"other\",folder=\"/runs/other\","
              "state=\"running\"} 0\n"));
  CHECK(holds(text, "exit_code{run=\"other\",folder=\"/runs/other\"} 6\n"));
  CHECK(text.ends_with("# EOF\n"));
}

TEST_CASE("labels are escaped, and are UTF-8 whatever a folder is called") {
  RunSummary run;
  run.name = "a\"b\\c\nd\xff";
  run.folder = "/r";
  CHECK(holds(openmetrics_text({run}),
              "run=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\",folder=\"/r\""));
}

TEST_CASE("figures that are not finite are written as the format has them") {
  RunSummary run;
  run.folder = "/r";
  run.loss = std::nan("");
  run.val_auroc.value = -INFINITY;
  const std::string text = openmetrics_text({run});
  CHECK(holds(text, "loss{run=\"\",folder=\"/r\"} NaN\n"));
  CHECK(holds(text, "validation_auroc{run=\"\",folder=\"/r\"} -Inf\n"));
}

TEST_CASE("a run that is named twice is written once") {
  RunSummary run;
  run.name = "one";
  run.folder = "/runs/one";
  RunSummary again = run;
  again.folder = "/runs/other/../one/";
  CHECK(openmetrics_text({run, again}) == openmetrics_text({run}));
}

TEST_CASE("a folder has one label, however somebody came to it") {
  const std::string here = fs::current_path().string();
  CHECK(folder_label("runs/a") == here + "/runs/a");
  CHECK(folder_label("./runs//b/../a/") == here + "/runs/a");
  CHECK(folder_label(here + "/runs/a/.") == here + "/runs/a");
  CHECK(folder_label("/") == "/");
}

TEST_CASE("only a run that runs has time left") {
  RunSummary run;
  run.folder = "/r";
  run.seconds_to_go = 36;
  run.job_seconds_left = 72;
  run.state = "running";
  CHECK(holds(openmetrics_text({run}),
              "train_remaining_seconds{run=\"\",folder=\"/r\"} 36\n"));
  CHECK(holds(openmetrics_text({run}), "job_remaining_seconds{"));
  run.state = "stopped";
  CHECK_FALSE(holds(openmetrics_text({run}), "remaining_seconds{"));
}

TEST_CASE("a run that is left out for another's labels is told") {
  RunSummary one, other;
  one.folder = "/runs/\xff";  // both are one name in UTF-8
  other.folder = "/runs/\xfe";
  std::vector<std::string> told;
  openmetrics_text({one, one, other},
                   [&](const std::string& text) { told.push_back(text); });
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with("[status] /runs/\xfe: another run"));
}
