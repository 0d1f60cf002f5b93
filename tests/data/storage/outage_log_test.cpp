// Messages about storage that does not answer, and when they come.
#include "data/storage/outage_log.hpp"

#include <thread>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/log.hpp"
#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// The text that `action` puts into the log file.
std::string logged(const std::function<void()>& action) {
  const ScratchFolder folder;
  const std::string path = (folder / "log.txt").string();
  set_log_file(path);
  action();
  close_log();
  return read_text(path);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;
       at += part.size())
    ++found;
  return found;
}

}  // namespace

TEST_CASE("a short outage is not told of, a long one once, and its end once") {
  OutageLog outages("s3", 10, 1000);
  CHECK(logged([&] { outages.failed(now_s() - 5, "timed out"); }).empty());
  CHECK(logged([&] { outages.worked(); }).empty());
  const std::string told = logged([&] {
    for (int i = 0; i < 5; ++i) outages.failed(now_s() - 60, "timed out");
  });
  CHECK(count(told, "[s3] reads have failed for 1m00s") == 1);
  CHECK(count(told, ": timed out") == 1);
  const std::string ended = logged([&] {
    outages.worked();
    outages.worked();
  });
  CHECK(count(ended, "[s3] the storage answers again") == 1);
}

TEST_CASE("an outage that goes on is told of again") {
  OutageLog outages("files", 0, 0);
  const std::string told = logged([&] {
    outages.failed(now_s() - 60, "stale handle");
    outages.failed(now_s() - 90, "stale handle");
  });
  CHECK(count(told, "[files] reads have failed") == 2);
}

TEST_CASE("many threads that meet one outage say one line") {
  OutageLog outages("s3", 1, 1000);
  const std::string told = logged([&] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] { outages.failed(now_s() - 20, "timed out"); });
  });
  CHECK(count(told, "reads have failed") == 1);
}

TEST_CASE("a pause ends when nobody wants the bytes any more") {
  std::stop_source stop;
  stop.request_stop();
  pause(3600, stop.get_token());
  pause(0, {});
  SUCCEED("returned");
}
