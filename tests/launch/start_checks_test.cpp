#include "chexnet/launch/start_checks.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {
std::string level(const CheckResult& check) { return level_name(check.level); }
}  // namespace

TEST_CASE("an mpirun that is absent or of another MPI is told") {
  CHECK(open_mpi_version("mpirun (Open MPI) 4.1.4") == "4.1.4");
  CHECK(open_mpi_version("mpirun (Open MPI) 5.0.11") == "5.0.11");
  CHECK(open_mpi_version("Open MPI v4.1.4") == "4.1.4");
  CHECK(open_mpi_version("HYDRA build details:").empty());
  CHECK(open_mpi_version("Intel(R) MPI Library for Linux* OS, Version 2021.9")
            .empty());

  CHECK(level(mpirun_check({}, true)) == "FAIL");
  CHECK(level(mpirun_check({}, false)) == "WARN");
  CHECK(level(mpirun_check({"/m/mpirun", "HYDRA build details:"}, true)) ==
        "FAIL");
  const Mpirun open{"/o/mpirun", "mpirun (Open MPI) 4.1.4"};
  CHECK(level(mpirun_check(open, true)) == "PASS");

  CHECK(level(mpi_library_check(open, "Open MPI v4.1.4", "", true)) == "PASS");
  CHECK(level(mpi_library_check(open, "Open MPI v5.0.11", "", true)) == "FAIL");
  CHECK(level(mpi_library_check(open, "Open MPI v5.0.11", "", false)) ==
        "WARN");
  CHECK(level(mpi_library_check(open, "", "cannot be opened", true)) == "FAIL");
  CHECK(level(mpi_library_check({}, "Open MPI v4.1.4", "", false)) == "PASS");
}

TEST_CASE("each interface of this host is named once") {
  auto names = read_network_facts(nullptr).interfaces;
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

TEST_CASE("a network that cannot work is told") {
  NetworkFacts facts;
  facts.interfaces = {"lo", "eth0"};
  facts.addresses = {"127.0.0.1", "10.1.2.3"};
  facts.adapters = {"mlx5_0"};
  facts.ucx = true;
  const auto of = [&](const std::string& network) {
    return level(network_check(*NetworkChoice::parse(network), facts));
  };
  for (const char* good : {"auto", "tcp", "tcp:eth0", "tcp:lo,eth0",
                           "tcp:10.1.0.0/16", "ib", "ib:mlx5_0", "ucx"})
    CHECK(of(good) == "PASS");
  for (const char* bad :
       {"tcp:eth9", "tcp:eth0,eth9", "tcp:10.2.0.0/16", "ib:mlx5_9", "opa"})
    CHECK(of(bad) == "FAIL");
  facts.adapters = {"hfi1_0"};
  CHECK(of("opa") == "PASS");
  CHECK(of("ib") == "FAIL");
  facts.ucx = false;
  CHECK(of("ucx") == "FAIL");
  // Ranks on other hosts, an installation that says nothing: MPI will find out.
  facts.adapters.reset();
  facts.ucx.reset();
  CHECK(of("ib") == "PASS");
}

TEST_CASE(
    "a failed check before the start is one sentence, and a fault of the "
    "config or the machine") {
  NetworkFacts facts;
  facts.interfaces = {"lo"};
  facts.adapters.emplace();
  CHECK(error_of<ConfigError>([&] {
          refuse_failed(
              {mpirun_check({}, false),
               network_check(*NetworkChoice::parse("tcp:eth9"), facts)});
        }).find("has no eth9. Hint: it has lo") != std::string::npos);
  CHECK(error_of<DeviceError>([&] {
          refuse_failed({network_check(*NetworkChoice::parse("ib"), facts)});
        }).find("no such adapter") != std::string::npos);
  CHECK(error_of<DeviceError>([&] {
          refuse_failed({mpirun_check({}, true)});
        }).find("Hint: install openmpi-bin") != std::string::npos);
  refuse_failed({mpirun_check({}, false)});
}

TEST_CASE("a folder for temporary files that is not there is told") {
  const ScratchFolder folder;
  const auto with = [](const std::string& tmpdir) {
    return level(temporary_folder_check([=](const char* name) -> const char* {
      return std::string(name) == "TMPDIR" ? tmpdir.c_str() : nullptr;
    }));
  };
  CHECK(with(folder.path().string()) == "PASS");
  CHECK(with((folder / "absent").string()) == "FAIL");
}
