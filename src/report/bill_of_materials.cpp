#include "chexnet/report/bill_of_materials.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "chexnet/comm/cuda_library.hpp"
#include "chexnet/core/checksum.hpp"
#include "chexnet/core/clock.hpp"
#include "components.hpp"

namespace chexnet {
namespace {

constexpr const char* kName = "chexnet-train";
constexpr const char* kUnknown = "NOASSERTION";

// Letters, digits, "." and "-" are what an SPDX id may hold.
std::string spdx_id(const std::string& name) {
  std::string id = "SPDXRef-";
  for (const char c : name)
    id +=
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '-';
  return id;
}

Json spdx_package(const Component& component) {
  Json package = {{"SPDXID", spdx_id(component.name)},
                  {"name", component.name}};
  if (!component.version.empty()) package["versionInfo"] = component.version;
  package["downloadLocation"] = kUnknown;
  package["filesAnalyzed"] = false;
  package["homepage"] = component.home;
  package["licenseConcluded"] = component.license;
  package["licenseDeclared"] = component.license;
  package["copyrightText"] = kUnknown;
  return package;
}

}  // namespace

std::vector<Component> components() {
  std::vector<Component> found;
  std::istringstream lines(kComponents);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Component c;
    std::getline(fields, c.name, '|');
    std::getline(fields, c.version, '|');
    std::getline(fields, c.license, '|');
    std::getline(fields, c.home, '|');
    if (std::string program; std::getline(fields, program, '|'))
      c.program = program;
    if (!c.name.empty()) found.push_back(std::move(c));
  }
  return found;
}

Json version_json() {
  const GpuBuild& gpus = CudaLibrary::build();
  Json json = {{"name", kName},
               {"version", CHEXNET_VERSION},
               {"cuda_variant", gpus.variant},
               {"gpu_architectures", gpus.architectures},
               {"compiler", __VERSION__},
               {"components", Json::array()}};
  for (const auto& c : components())
    json["components"].push_back({{"name", c.name},
                                  {"version", c.version},
                                  {"license", c.license},
                                  {"home", c.home},
                                  {"program", c.program}});
  return json;
}

// The namespace is one for each document: of these components, at this time.
// No address is behind it (RFC 2606).
Json spdx_json() {
  const std::string version = CHEXNET_VERSION, created = utc_time();
  const std::string number = sha256_hex(kComponents + created).substr(0, 16);
  Json json = {
      {"spdxVersion", "SPDX-2.3"},
      {"dataLicense", "CC0-1.0"},
      {"SPDXID", "SPDXRef-DOCUMENT"},
      {"name", kName + ("-" + version)},
      {"documentNamespace",
       "https://chexnet-train.invalid/spdx/" + version + "-" + number},
      {"creationInfo",
       {{"created", created},
        {"creators", {"Tool: " + std::string(kName) + "-" + version}}}},
      {"packages", Json::array()},
      {"relationships", Json::array()},
      {"hasExtractedLicensingInfos",
       Json::array(
           {{{"licenseId", "LicenseRef-NVIDIA"},
             {"name", "NVIDIA Software License Agreement"},
             {"extractedText", "https://docs.nvidia.com/cuda/eula"}}})}};
  const auto relate = [&](const std::string& from, const char* how,
                          const std::string& to) {
    json["relationships"].push_back({{"spdxElementId", from},
                                     {"relationshipType", how},
                                     {"relatedSpdxElement", to}});
  };
  std::set<std::string> programs = {kName};
  for (const auto& c : components()) programs.insert(c.program);
  for (const auto& program : programs) {
    json["packages"].push_back(
        spdx_package({program, version, "Apache-2.0", kUnknown}));
    relate("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id(program));
  }
  for (const auto& c : components()) {
    json["packages"].push_back(spdx_package(c));
    relate(spdx_id(c.program), "DEPENDS_ON", spdx_id(c.name));
  }
  return json;
}

}  // namespace chexnet
