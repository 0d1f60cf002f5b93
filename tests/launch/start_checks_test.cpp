#include "chexnet/launch/start_checks.hpp"

#include <algorithm>

#include "chexnet/core/error.hpp"
#include "support/catch.hpp"
#include "support/fixtures.hpp"

using namespace chexnet;

namespace {
std::string level(const CheckResult& check) { return level_name(check.level); }
}  // namespace

TEST_CASE("an mpirun that is absent or of an MPI that is not known is told") {
  CHECK(level(mpirun_check({}, true)) == "FAIL");
  CHECK(level(mpirun_check({}, false)) == "WARN");
  CHECK(level(mpirun_check({"/m/mpirun", "LAM 7.1.4/MPI 2"}, true)) == "FAIL");
  const Mpirun open{"/o/mpirun", "mpirun (Open MPI) 4.1.4"};
  const Mpirun hydra{"/m/mpirun",
                     "HYDRA build details:\n    Version:        5.0.2\n"};
  CHECK(level(mpirun_check(open, true)) == "PASS");
  CHECK(mpirun_check(hydra, true).text == "MPICH 5.0.2, /m/mpirun");

  // launch.mpi asks for the other one.
  CHECK(level(mpirun_check(open, true, MpiFamily::kOpenMpi)) == "PASS");
  CHECK(level(mpirun_check(open, true, MpiFamily::kMpich)) == "FAIL");
  CHECK(level(mpirun_check(hydra, false, MpiFamily::kOpenMpi)) == "WARN");
  CHECK(rank_starter(hydra, {}).family == MpiFamily::kMpich);
  CHECK(rank_starter({}, MpiFamily::kMpich).family == MpiFamily::kMpich);
  CHECK(rank_starter({"/m/mpirun.mpich", "HYDRA build details"}, {}).command ==
        "mpirun.mpich");
}

TEST_CASE("mpirun and the MPI library are of one installation") {
  const Mpirun open{"/o/mpirun", "mpirun (Open MPI) 4.1.4"};
  const Mpirun hydra{"/m/mpirun", "HYDRA build details: Version: 5.0.2"};
  const auto of = [](const Mpirun& mpirun, const std::string& library) {
    return level(
        mpi_library_check(mpirun, mpi_name_in(library), "/lib", "", true));
  };
  CHECK(of(open, "Open MPI v4.1.4, package: Debian") == "PASS");
  CHECK(of(open, "Open MPI v5.0.11") == "FAIL");
  CHECK(of(open, "MPICH Version:      5.0.2") == "FAIL");
  CHECK(of({}, "Open MPI v4.1.4") == "PASS");
  // One ABI, and PMI between them.
  CHECK(of(hydra, "MPICH Version:      4.0.2") == "PASS");
  CHECK(of(hydra, "CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)") == "PASS");
  CHECK(of(hydra, "Open MPI v4.1.4") == "FAIL");

  const auto absent =
      mpi_library_check(open, {}, "", "not there. Hint: load it", false);
  CHECK(level(absent) == "WARN");
  CHECK(absent.text + "|" + absent.advice == "not there|load it");
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
