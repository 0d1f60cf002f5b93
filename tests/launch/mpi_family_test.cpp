#include "chexnet/launch/mpi_family.hpp"

#include "support/catch.hpp"
#include "support/fake_environment.hpp"

using namespace chexnet;

namespace {

using Variables = std::map<std::string, std::string>;
const Variables kOpenMpiRank = {{"OMPI_COMM_WORLD_SIZE", "2"},
                                {"PMIX_RANK", "0"}};
const Variables kHydraRank = {{"HYDI_CONTROL_FD", "7"},
                              {"PMI_FD", "9"},
                              {"PMI_RANK", "0"},
                              {"PMI_SIZE", "2"}};
const Variables kPmi2 = {{"PMI_FD", "11"},
                         {"PMI_RANK", "0"},
                         {"PMI_SIZE", "2"},
                         {"SLURM_STEP_ID", "0"}};
const Variables kPmix = {{"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}};

}  // namespace

TEST_CASE("an MPI is known by what it says of itself") {
  struct Case {
    const char* says;
    const char* name;
    MpiFamily family;
  };
  for (const Case& c : std::vector<Case>{
           {"mpirun (Open MPI) 4.1.4", "Open MPI 4.1.4", MpiFamily::kOpenMpi},
           {"Open MPI v5.0.11, package: Open MPI root@b Distribution",
            "Open MPI 5.0.11", MpiFamily::kOpenMpi},
           {"HYDRA build details:\n    Version:        4.0.2\n    Release "
            "Date: Thu Apr  7 12:34:45 CDT 2022",
            "MPICH 4.0.2", MpiFamily::kMpich},
           {"MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi",
            "MPICH 5.0.2", MpiFamily::kMpich},
           {"Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 2023",
            "Intel MPI 2021.9", MpiFamily::kMpich},
           {"Intel(R) MPI Library 2021.9 for Linux* OS", "Intel MPI 2021.9",
            MpiFamily::kMpich},
           {"MPI VERSION    : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)",
            "Cray MPICH 8.1.25.17", MpiFamily::kMpich}}) {
    const MpiName found = mpi_name_in(c.says);
    CHECK(found.text() == c.name);
    CHECK(found.family == c.family);
  }
  CHECK_FALSE(mpi_name_in("LAM 7.1.4/MPI 2").family);
  CHECK_FALSE(mpi_name_in("").family);
}

TEST_CASE("a rank loads the MPI of the launcher that started it") {
  CHECK(launcher_mpi(fake(kOpenMpiRank)) == MpiFamily::kOpenMpi);
  CHECK(launcher_mpi(fake(kPmix)) == MpiFamily::kOpenMpi);
  CHECK(launcher_mpi(fake(kHydraRank)) == MpiFamily::kMpich);
  CHECK(launcher_mpi(fake(kPmi2)) == MpiFamily::kMpich);
  CHECK(launcher_mpi(fake({{"PALS_RANKID", "1"}})) == MpiFamily::kMpich);
  CHECK_FALSE(launcher_mpi(fake({{"SLURM_NTASKS", "4"}})));
  auto built_for_it = kPmi2;
  built_for_it["OMPI_MCA_pmix"] = "s2";
  CHECK(launcher_mpi(fake(built_for_it)) == MpiFamily::kOpenMpi);
  // mpirun inside a step of srun.
  auto inside = kOpenMpiRank;
  inside.insert(kPmi2.begin(), kPmi2.end());
  CHECK(launcher_mpi(fake(inside)) == MpiFamily::kOpenMpi);
  inside = kHydraRank;
  inside.insert(kPmix.begin(), kPmix.end());
  CHECK(launcher_mpi(fake(inside)) == MpiFamily::kMpich);

  CHECK(choose_mpi({}, fake(kHydraRank), MpiFamily::kOpenMpi).family ==
        MpiFamily::kMpich);
  CHECK(choose_mpi({}, fake({}), MpiFamily::kMpich).by == "mpirun's");
  CHECK(choose_mpi(MpiFamily::kMpich, fake(kPmix)).by == "launch.mpi");
  CHECK(choose_mpi({}, fake({})).family == MpiFamily::kOpenMpi);
}

TEST_CASE("a launcher and an MPI that do not understand each other are told") {
  const auto problem = [](const Variables& env, MpiFamily family) {
    return launcher_problem(fake(env), family);
  };
  CHECK(problem(kPmi2, MpiFamily::kOpenMpi).find("srun --mpi=pmix") !=
        std::string::npos);
  CHECK(problem(kHydraRank, MpiFamily::kOpenMpi)
            .find("the launcher of MPICH started this rank, and "
                  "launch.mpi=openmpi asks for Open MPI") != std::string::npos);
  CHECK(problem(kOpenMpiRank, MpiFamily::kMpich)
            .find("the launcher of Open MPI") != std::string::npos);
  for (const auto& good : {kOpenMpiRank, kPmix, Variables{}})
    CHECK(problem(good, MpiFamily::kOpenMpi).empty());
  for (const auto& good : {kHydraRank, kPmi2, Variables{}})
    CHECK(problem(good, MpiFamily::kMpich).empty());
  // An MPICH may be built for Slurm's PMIx.
  CHECK(problem(kPmix, MpiFamily::kMpich).empty());

  const auto hint = [](const Variables& env, MpiFamily family) {
    return library_hint(fake(env), family);
  };
  CHECK(hint(kPmi2, MpiFamily::kMpich).find("srun --mpi=pmix") !=
        std::string::npos);
  CHECK(hint(kHydraRank, MpiFamily::kMpich)
            .find("the launcher of MPICH started this rank: load the module of "
                  "MPICH") != std::string::npos);
  CHECK(hint({}, MpiFamily::kOpenMpi).find("one rank needs none") !=
        std::string::npos);
}
