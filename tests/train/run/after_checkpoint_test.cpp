#include "train/run/after_checkpoint.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "chexnet/core/log.hpp"
#include "chexnet/core/output_file.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

// A run with one checkpoint, and places beside it for what commands say.
struct CopiedRun {
  CopiedRun() {
    scratch.write("run/config.yaml", "run: {}");
    scratch.write("run/.lock", "");
    scratch.write("run/checkpoints/step-00000001/model", "one");
    fs::create_directory_symlink("step-00000001", run / "checkpoints/last");
    // Never in the middle of a test that failed.
    scratch.write("wait", "until [ -e " + (scratch / "go").string() +
                              " ]; do sleep 0.01; done");
  }
  // `words` with the scratch folder as $there.
  std::string command(const std::string& words) const {
    return "there=" + scratch.path().string() + "; " + words;
  }
  void release() const { scratch.write("go", ""); }
  void await(const std::string& name) const {
    while (!fs::exists(scratch / name))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::string said(const std::string& name) const {
    return read_text(scratch / name);
  }

  ScratchFolder scratch;
  fs::path run = scratch / "run";
};

// A process that has ended may be left to whoever waits for it.
bool runs(const std::string& pid) {
  std::ifstream stat("/proc/" + pid.substr(0, pid.find('\n')) + "/stat");
  std::string line;
  return std::getline(stat, line) && line.find(") Z ") == std::string::npos;
}

const auto kPatient = [](double) { return true; };

}  // namespace

TEST_CASE("what becomes due while a command runs is one command after it") {
  const CopiedRun copied;
  AfterCheckpoint after(
      copied.command(
          R"(: >>$there/begun; . $there/wait; ls "$1/checkpoints" >>$there/seen; echo >>$there/seen)"),
      copied.run);
  after.due();
  copied.await("begun");
  for (const char* step : {"step-00000002", "step-00000003"}) {
    copied.scratch.write(std::string("run/checkpoints/") + step + "/model", "");
    after.due();
  }
  copied.release();
  after.finish(kPatient);
  CHECK(copied.said("seen") ==
        "last\nstep-00000001\n\n"
        "last\nstep-00000001\nstep-00000002\nstep-00000003\n\n");
  CHECK(after.failures() == 0);
}

TEST_CASE("a command sees the run as it was when it became due") {
  const CopiedRun copied;
  AfterCheckpoint after(
      copied.command(
          R"(: >$there/begun; . $there/wait; (basename "$1"; ls -A "$1"; cat "$1"/checkpoints/*/model; readlink "$1/checkpoints/last") >>$there/seen)"),
      copied.run);
  after.due();
  copied.await("begun");
  const fs::path model = copied.run / "checkpoints/step-00000001/model";
  write_atomically(model, "another");   // as thresholds are written into it
  fs::remove_all(model.parent_path());  // as an old checkpoint goes
  copied.release();
  after.finish(kPatient);
  CHECK(copied.said("seen").starts_with(
      "run\ncheckpoints\nconfig.yaml\noneonestep-00000001\n"));
  CHECK_FALSE(fs::exists(copied.run / ".after_checkpoint/1"));
}

TEST_CASE("a command that fails is a warning and is counted") {
  const CopiedRun copied;
  const std::string log = (copied.scratch / "log").string();
  set_log_file(log);
  AfterCheckpoint after("echo first >&2; echo 'no such bucket' >&2; exit 3",
                        copied.run);
  after.finish(kPatient);
  close_log();
  CHECK(after.failures() == 1);
  CHECK(read_text(log).find("run.after_checkpoint: exit code 3: no such "
                            "bucket") != std::string::npos);
}

TEST_CASE("a command that does not end in time is killed with its children") {
  const CopiedRun copied;
  AfterCheckpoint after(
      copied.command("sleep 1000 & echo $! >$there/pid.new; mv $there/pid.new "
                     "$there/pid; wait"),
      copied.run);
  after.due();
  copied.await("pid");
  after.finish([](double) { return false; });
  CHECK(after.failures() == 1);
  const std::string child = copied.said("pid");
  while (runs(child)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST_CASE("a start removes what a killed one left") {
  const CopiedRun copied;
  copied.scratch.write("run/.after_checkpoint/7/run/config.yaml", "");
  AfterCheckpoint::remove_left_views(copied.run);
  CHECK_FALSE(fs::exists(copied.run / ".after_checkpoint"));
}
