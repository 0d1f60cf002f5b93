#include "report/metric_lines.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace chexnet;

namespace {

std::vector<std::string> events_of(const std::string& text) {
  std::vector<std::string> found;
  for_each_event(text, [&](const nlohmann::json&, const std::string& line) {
    found.push_back(line);
  });
  return found;
}

}  // namespace

TEST_CASE("each whole line that is an event is given with its end") {
  CHECK(events_of("") == std::vector<std::string>{});
  CHECK(events_of("{\"step\":1}\n{}\n") ==
        std::vector<std::string>{"{\"step\":1}\n", "{}\n"});
}

TEST_CASE("what is no event is passed over") {
  for (const char* line :
       {"", "17", "null", "[{\"step\":1}]", "{\"step\":1", "{\"step\":1}}",
        "\"step\"", R"({"step":"1"})", R"({"step":null})", R"({"step":1e12})",
        R"({"step":-1e12})", R"({"event":1})", R"({"host":null})",
        R"({"loss":"0.5"})", R"({"own_ms_per_step":[1]})",
        R"({"exit_code":true})"}) {
    INFO(line);
    CHECK(events_of(std::string(line) + "\n").empty());
  }
}

TEST_CASE(
    "a figure may be null, and fields that nobody reads again may be "
    "anything") {
  for (const char* line :
       {R"({"loss":null})", R"({"step":999999999999})", R"({"mine":[1,"x"]})",
        R"({"own_ms_per_step":{}})", R"({"images_per_s":1e300})"}) {
    INFO(line);
    CHECK(events_of(std::string(line) + "\n").size() == 1);
  }
}

TEST_CASE("whole lines that are no events are counted") {
  const auto nothing = [](const nlohmann::json&, const std::string&) {};
  CHECK(for_each_event("{\"step\":1}\n\n17\n{\"st", nothing) == 2);
}

TEST_CASE("a line without its end was torn by a crash") {
  CHECK(events_of("{\"step\":1}").empty());
  CHECK(events_of("{\"step\":1}\n{\"step\":2}").size() == 1);
}
