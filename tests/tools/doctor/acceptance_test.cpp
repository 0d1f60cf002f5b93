#include "chexnet/tools/doctor/acceptance.hpp"

#include <fstream>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

namespace chexnet {
namespace {

NodeThresholds thresholds_of(const std::string& text, const std::string& host,
                             const std::string& type = "") {
  const ScratchFolder folder;
  return read_acceptance(folder.write("site.yaml", text), type, host);
}

// Whether such a file is refused with these words.
bool refused(const std::string& text, const std::string& words,
             const std::string& type = "") {
  const std::string problem =
      error_of<ConfigError>([&] { thresholds_of(text, "node1", type); });
  UNSCOPED_INFO(problem);
  return problem.find(words) != std::string::npos;
}

constexpr const char* kTwoTypes =
    "cpu:\n  hosts: ['c*', login]\n  step: 12.5 images/s\n"
    "gpu:\n  hosts: ['gpu*']\n  allreduce: 500 MB/s\n  read: 2 GB/s\n"
    "  gpus: 4\n  driver: 580.65.06\n  self_test: required\n";

bool good(const NodeThresholds& wanted, const NodeFigures& found) {
  for (const auto& row : compare(wanted, found))
    if (!row.good) return false;
  return true;
}

}  // namespace

TEST_CASE("a node's thresholds are those of the type whose hosts fit") {
  CHECK(thresholds_of(kTwoTypes, "c17").type == "cpu");
  CHECK(thresholds_of(kTwoTypes, "login").images_per_s == 12.5);
  const NodeThresholds gpu = thresholds_of(kTwoTypes, "gpu3");
  CHECK(gpu.type == "gpu");
  CHECK(gpu.allreduce_gb_per_s == 0.5);
  CHECK(gpu.read_mb_per_s == 2000);
  CHECK(gpu.gpus == 4);
  CHECK(gpu.driver == "580.65.06");
  CHECK(gpu.self_test);
  CHECK_FALSE(gpu.images_per_s);
  CHECK(thresholds_of(kTwoTypes, "gpu3", "cpu").type == "cpu");
  CHECK(thresholds_of("any: {read: 1 MB/s}", "x").type == "any");
  // The first of the file, whatever their names; a flow has no lines.
  for (const char* file :
       {"z_special:\n  hosts: ['c*']\n  read: 1 MB/s\n"
        "default:\n  hosts: ['*']\n  read: 9 GB/s\n",
        "{z_special: {hosts: ['c*'], read: 1 MB/s}, default: {hosts: ['*'], "
        "read: 9 GB/s}}"}) {
    CHECK(thresholds_of(file, "c17").type == "z_special");
    CHECK(thresholds_of(file, "x").type == "default");
  }
}

TEST_CASE("a site file of thresholds is refused with its line") {
  CHECK(refused("cpu:\n  read: 1e308 GB/s\n",
                "'read' = '1e308 GB/s' is no rate"));
  CHECK(refused("cpu:\n  step: 20\n",
                "site.yaml:2: 'step' = '20' has no unit. Hint: images/s "
                "behind the number"));
  CHECK(refused("cpu:\n  allreduce: 25 Gbit/s\n",
                "site.yaml:2: 'allreduce' = '25 Gbit/s' has another unit. "
                "Hint: GB/s or MB/s"));
  CHECK(refused("cpu:\n  stpe: 20 images/s\n",
                "site.yaml:2: 'cpu.stpe' is unknown. Hint: TYPE.KEY, "
                "nearest are 'step'"));
  CHECK(refused("step: 20 images/s\n", "site.yaml:1: 'step' is unknown"));
  CHECK(refused("cpu:\n  step: -3 images/s\n",
                "is no rate. Hint: a number above 0 of images/s"));
  CHECK(refused("cpu:\n  step: nan images/s\n", "is no rate"));
  CHECK(refused("cpu:\n  gpus: some\n", "is no count"));
  CHECK(refused("cpu:\n  driver: new\n", "is no version"));
  CHECK(
      refused("cpu:\n  self_test: maybe\n", "Hint: required, or leave it out"));
  CHECK(refused("cpu:\n  step: [20 images/s]\n", "is a list"));
  CHECK(refused(kTwoTypes,
                "no type has hosts for node1. Hint: --node-type, one of "
                "cpu, gpu"));
  CHECK(refused(kTwoTypes, "no type 'gpv'. Hint: nearest are 'gpu'", "gpv"));
  CHECK(refused("", "no thresholds"));
  // Whoever names hosts means these alone, though there is no other type.
  CHECK(refused("gpu: {hosts: ['gpu*'], read: 1 MB/s}\n",
                "no type has hosts for node1. Hint: --node-type, one of gpu"));
  CHECK(refused("any: {hosts: ['*']}\n",
                "'any' has no threshold. Hint: any: {step: 100 images/s}"));
}

TEST_CASE("each figure is held against its threshold") {
  NodeThresholds wanted;
  CHECK(compare(wanted, {}).empty());
  wanted.images_per_s = 10;
  CHECK(good(wanted, {.images_per_s = 10}));
  CHECK_FALSE(good(wanted, {.images_per_s = 9.9}));
  CHECK_FALSE(good(wanted, {}));  // not measured
  CHECK(compare(wanted, {.images_per_s = 9})[0].check().text ==
        "9.00 images/s, at least 10.00 images/s");
  CHECK(compare(wanted, {})[0].check().text ==
        "not measured, at least 10.00 images/s");
  CHECK(compare(wanted, {})[0].check().level == Level::kFail);
}

TEST_CASE("a host with an older driver, fewer GPUs or no self-test fails") {
  NodeThresholds wanted;
  wanted.driver = "580.65.06";
  CHECK(good(wanted, {.drivers = {"580.65.06", "580.95"}}));
  CHECK(good(wanted, {.drivers = {"590.1"}}));
  CHECK_FALSE(good(wanted, {.drivers = {"580.95", "535.230.02"}}));
  CHECK(compare(wanted, {.drivers = {"580.95", "535.230"}})[0].found ==
        "535.230");
  CHECK_FALSE(good(wanted, {.drivers = {""}}));
  CHECK_FALSE(good(wanted, {}));
  wanted.driver = "";
  wanted.gpus = 4;
  CHECK(good(wanted, {.gpus = 4}));
  CHECK_FALSE(good(wanted, {.gpus = 3}));
  wanted.gpus.reset();
  wanted.self_test = true;
  CHECK(good(wanted, {.self_test = true}));
  CHECK_FALSE(good(wanted, {}));
}

}  // namespace chexnet
