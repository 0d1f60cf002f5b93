#include "chexnet/report/bill_of_materials.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "chexnet/comm/cuda_library.hpp"
#include "components.hpp"

namespace chexnet {

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
  Json json = {
      {"name", "chexnet-train"},      {"version", CHEXNET_VERSION},
      {"cuda_variant", gpus.variant}, {"gpu_architectures", gpus.architectures},
      {"compiler", __VERSION__},      {"components", Json::array()}};
  for (const auto& c : components())
    json["components"].push_back({{"name", c.name},
                                  {"version", c.version},
                                  {"license", c.license},
                                  {"home", c.home},
                                  {"program", c.program}});
  return json;
}

}  // namespace chexnet
