#include "chexnet/train/run/job_clock.hpp"

#include <cstdlib>

#include "chexnet/core/clock.hpp"
#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {

// A variable of the environment for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

LaunchConfig limited(const std::string& text) {
  LaunchConfig config;
  config.time_limit = text;
  return config;
}

constexpr double kHour = 3600;

}  // namespace

TEST_CASE("a time limit is read as batch systems write times") {
  CHECK_FALSE(JobClock::configured_s(limited("")));
  CHECK(JobClock::configured_s(limited("2:00:00")) == 2 * kHour);
  CHECK(JobClock::configured_s(limited("1-12:00:00")) == 36 * kHour);
  const auto text =
      error_of<ConfigError>([] { JobClock::configured_s(limited("soon")); });
  CHECK(text.find("launch.time_limit: 'soon'") != std::string::npos);
}

TEST_CASE("a limit that cannot be read is told when the clock is made") {
  CHECK_FALSE(error_of<ConfigError>([] {
                JobClock clock(limited("2 hours"));
              }).empty());
}

TEST_CASE(
    "a limit counts from the first start by hand, not from that of the "
    "restarted ranks") {
  const Variable parent("CHEXNET_PARENT",
                        std::to_string(system_time_s() - 3 * kHour));
  const JobClock clock(limited("10:00:00"));
  const auto left = clock.left_s();
  REQUIRE(left);
  CHECK(*left <= 7 * kHour);
  CHECK(*left > 6 * kHour);
}

TEST_CASE("a limit that has passed leaves less than nothing") {
  const Variable parent("CHEXNET_PARENT",
                        std::to_string(system_time_s() - 3 * kHour));
  const auto left = JobClock(limited("1:00:00")).left_s();
  REQUIRE(left);
  CHECK(*left < 0);
}

TEST_CASE("a start time that is no number counts from this process") {
  const Variable parent("CHEXNET_PARENT", "unknown");
  const auto left = JobClock(limited("100:00:00")).left_s();
  REQUIRE(left);
  CHECK(*left > 90 * kHour);
}
