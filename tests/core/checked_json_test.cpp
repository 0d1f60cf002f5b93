#include "core/checked_json.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

TEST_CASE("JSON within its limits is parsed, other JSON is not") {
  const JsonLimits limits{.depth = 3, .values = 10};
  CHECK(checked_json(R"({"a":[{"b":1}],"c":"[[[[["})", limits)
            .at("a")[0]
            .at("b") == 1);
  CHECK(json_problem("[[[[1]]]]", limits) == "it is nested more than 3 deep");
  CHECK(json_problem("[1,2,3,4,5,6,7,8,9,10]", limits) ==
        "it holds more than 10 values");
  CHECK(json_problem(R"([{"a":1},{"a":1}])", limits).empty());
  CHECK(json_problem(R"({"a":1,"a":2})", limits) == "key 'a' appears twice");
  CHECK(json_problem("no JSON", limits).empty());
  CHECK_THROWS_AS(checked_json("no JSON", limits), nlohmann::json::parse_error);
}

TEST_CASE("brackets without end are seen before they are kept") {
  CHECK(json_problem(std::string(8'000'000, '['), {}) ==
        "it is nested more than 32 deep");
}
