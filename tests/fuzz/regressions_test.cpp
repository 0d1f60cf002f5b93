// Every fuzz target on its seeds and on the files that once broke it
// (tests/fuzz/regressions/TARGET), without a fuzzer.
#include <filesystem>

#include "chexnet/core/read_file.hpp"
#include "fuzz/target.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace chexnet;
namespace fs = std::filesystem;

namespace {

const fs::path kRegressions = source_file("tests/fuzz/regressions");

}  // namespace

TEST_CASE("every fuzz target takes its seeds, also with checksums made again") {
  REQUIRE(fuzz::targets().size() > 20);
  for (const auto& target : fuzz::targets()) {
    if (target.seeds == nullptr) continue;
    for (const auto& seed : target.seeds()) {
      INFO(target.name);
      auto bytes = fuzz::bytes_of(seed);
      CHECK_NOTHROW(target.run(bytes));
      if (target.mend == nullptr) continue;
      target.mend(bytes);
      CHECK_NOTHROW(target.run(bytes));
    }
  }
}

TEST_CASE("what once broke a fuzz target no longer does") {
  for (const auto& target : fuzz::targets()) {
    const fs::path folder = kRegressions / target.name;
    if (!fs::exists(folder)) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      INFO(file.path());
      std::vector<std::byte> bytes;
      read_bytes(file.path(), bytes);
      CHECK_NOTHROW(target.run(bytes));
    }
  }
}

// A target has its file's name; not all are linked here.
TEST_CASE("regression files belong to fuzz targets") {
  for (const auto& folder : fs::directory_iterator(kRegressions)) {
    const std::string target = folder.path().filename().string() + ".cpp";
    INFO(target);
    CHECK(fs::exists(source_file("tests/fuzz/targets/" + target)));
  }
}
