#include "chexnet/report/bill_of_materials.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "chexnet/core/files.hpp"
#include "support/catch.hpp"

using namespace chexnet;

TEST_CASE("every component of the build has a name, a licence and a home") {
  const auto found = components();
  REQUIRE(found.size() >= 14);
  const std::string licenses =
      read_text(CHEXNET_SOURCE_DIR "/third_party/LICENSES.md");
  for (const auto& c : found) {
    INFO(c.name);
    CHECK_FALSE(c.version.empty());
    CHECK_FALSE(c.license.empty());
    CHECK(c.home.starts_with("https://"));
    CHECK(licenses.find(c.name) != std::string::npos);
  }
}

TEST_CASE("the bill of materials describes the program and what it needs") {
  const Json spdx = spdx_json();
  CHECK(spdx["spdxVersion"] == "SPDX-2.3");
  std::set<std::string> ids;
  for (const auto& package : spdx["packages"]) {
    const std::string id = package["SPDXID"];
    CHECK(
        id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                             "WXYZ0123456789.-") == std::string::npos);
    CHECK(ids.insert(id).second);
  }
  std::set<std::string> programs;
  for (const auto& c : components()) programs.insert(c.program);
  CHECK(ids.size() == components().size() + programs.size());
  CHECK(ids.contains("SPDXRef-chexnet-train"));
  CHECK(ids.contains("SPDXRef-chexnet-dicom") == ids.contains("SPDXRef-GDCM"));
  for (const auto& relation : spdx["relationships"]) {
    CHECK(ids.contains(relation["relatedSpdxElement"]));
    if (relation["relatedSpdxElement"] == "SPDXRef-GDCM")
      CHECK(relation["spdxElementId"] == "SPDXRef-chexnet-dicom");
  }
  CHECK(version_json()["components"].size() == components().size());
}
