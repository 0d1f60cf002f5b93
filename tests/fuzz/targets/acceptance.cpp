// Site files of doctor --acceptance, and the rows that their thresholds make.
#include "chexnet/tools/doctor/acceptance.hpp"

#include <cmath>

#include "fuzz/memory_file.hpp"

namespace chexnet::fuzz {
namespace {

void run(Bytes bytes) {
  static MemoryFile file;
  const std::string path = file.holding(bytes);
  for (const char* type : {"", "gpu"}) {
    NodeThresholds wanted;
    if (!accepted<ConfigError>(
            [&] { wanted = read_acceptance(path, type, "node1"); }))
      continue;
    for (const auto& least :
         {wanted.images_per_s, wanted.allreduce_gb_per_s, wanted.read_mb_per_s})
      require(!least || (std::isfinite(*least) && *least > 0),
              "a threshold is a number above 0");
    require(!wanted.gpus || *wanted.gpus >= 0, "a count is not negative");

    for (const auto& row : compare(wanted, {})) {
      require(!row.good || row.wanted == "0",
              "what was not measured is not good");
      require(row.good || !row.check().advice.empty(), "what fails has advice");
    }
    NodeFigures best;
    best.images_per_s = best.allreduce_gb_per_s = best.read_mb_per_s = 1e308;
    best.gpus = 9999;
    best.self_test = true;
    best.drivers = {wanted.driver};
    for (const auto& row : compare(wanted, best)) {
      require(row.good || row.wanted.size() > 300, "what is best is good");
      require(!row.check().text.empty(), "a row has a text");
    }
  }
}

std::vector<std::string> seeds() {
  return {
      "gpu: {step: 1800 images/s, gpus: 4, driver: 580.65.06}\n"
      "cpu:\n  hosts: [node1, node2*]\n  step: 6 images/s\n",
      "all: {read: 1.5 GB/s, allreduce: 250 MB/s, self_test: required}\n",
      "a: {step: inf images/s}\n",
      "a: {driver: -1.2}\n",
      "gpu: {gpus: many}\n",
      "gpu: {step: [1, 2]}\n",
      "gpu: {self_test: perhaps}\n",
      "gpu: {hosts: [node1]}\n",
      "gpu: {hosts: [other*], gpus: 1}\n"};
}

const Registered kTarget{{"acceptance", run, nullptr, seeds}};

}  // namespace
}  // namespace chexnet::fuzz
