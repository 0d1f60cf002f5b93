#include "chexnet/report/bill_of_materials.hpp"

#include <nlohmann/json.hpp>

#include "chexnet/core/read_file.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace chexnet;

TEST_CASE("every component of the build has a name, a licence and a home") {
  const auto found = components();
  REQUIRE(found.size() >= 14);
  const std::string licenses =
      read_text(source_file("third_party/LICENSES.md"));
  for (const auto& c : found) {
    INFO(c.name);
    CHECK_FALSE(c.version.empty());
    CHECK_FALSE(c.license.empty());
    CHECK(c.home.starts_with("https://"));
    CHECK(licenses.find(c.name) != std::string::npos);
    CHECK((c.program == "chexnet-dicom") == (c.name == "GDCM"));
  }
  CHECK(version_json()["components"].size() == found.size());
}
