#include "chexnet/train/run/stop_request.hpp"

#include "chexnet/train/run/run_folder.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("what cannot be finished in the time of the job is not begun") {
  const ScratchFolder scratch;
  const auto solo = solo_communicator();
  Config config;
  config.run.dir = (scratch / "run").string();
  config.launch.time_limit = "100:00:00";
  config.launch.stop_margin_s = 3600;
  const RunFolder folder(config, Resume::kNo, *solo);
  StopRequest stop(config, folder, true);
  CHECK_FALSE(stop.asked(0));
  CHECK_FALSE(stop.asked(10 * 3600));
  CHECK(stop.asked(99.5 * 3600));  // an evaluation that takes as long
  // Rank 0 knows the time.
  CHECK(StopRequest(config, folder, false).asked(99.5 * 3600) == false);
  scratch.write("run/STOP", "");
  CHECK(stop.asked(0));
  CHECK(stop.stopped(3, nullptr) == ExitCode::kRequeue);
}
