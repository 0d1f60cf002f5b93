// Over a fake libcuda.so.1 (tests/fakes/cuda_driver.c), which the loader takes
// for the driver: it is open already under that name.
#include "chexnet/launch/machine/cuda_driver.hpp"

#include <dlfcn.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

CudaDriver ask(const char* words) {
  REQUIRE(dlopen(CHEXNET_FAKE_DRIVER, RTLD_NOW) != nullptr);
  setenv("FAKE_DRIVER", words, 1);
  CudaDriver driver = ask_cuda_driver();
  unsetenv("FAKE_DRIVER");
  return driver;
}

std::set<std::string> threads() {
  std::set<std::string> found;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task"))
    found.insert(entry.path().filename());
  return found;
}

bool blocks(const std::string& thread, int signal) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) !=
             0;
  return false;
}

}  // namespace

TEST_CASE("the driver's GPUs are read, and what it serves") {
  const CudaDriver driver = ask("gpus=2 sm=86 version=12020");
  CHECK(driver.present);
  CHECK(driver.error == 0);
  CHECK(driver.version == 12020);
  REQUIRE(driver.gpus.size() == 2);
  CHECK(driver.gpus[1].name == "Made-up GPU 1");
  CHECK(driver.gpus[1].major == 8);
  CHECK(driver.gpus[1].minor == 6);
}

TEST_CASE("a driver that does not start is no driver without GPUs") {
  const CudaDriver none = ask("gpus=0");
  CHECK(none.error == 0);
  CHECK(none.gpus.empty());
  const CudaDriver broken = ask("init=803");
  CHECK(broken.error == 803);
  CHECK(broken.error_name == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
}

TEST_CASE("a thread that the driver starts takes no signals") {
  std::thread([] {}).join();  // with the first comes a sanitizer's thread
  const auto before = threads();
  ask("thread");
  int started = 0;
  for (const auto& thread : threads()) {
    if (before.contains(thread)) continue;
    ++started;
    CHECK(blocks(thread, SIGTERM));
    CHECK(blocks(thread, SIGUSR1));
  }
  CHECK(started == 1);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  CHECK(sigismember(&own, SIGTERM) == 0);
}
