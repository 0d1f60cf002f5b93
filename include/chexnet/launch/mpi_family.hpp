// Which MPI starts the ranks, and which one they load: from the environment
// that launchers set, and from the names that mpirun and libraries print. Pure.
#pragma once

#include <optional>
#include <string>

#include "chexnet/config/choices.hpp"
#include "chexnet/launch/environment.hpp"

namespace chexnet {

// "Open MPI", "MPICH": for sentences.
const char* mpi_title(MpiFamily family);
MpiFamily other_mpi(MpiFamily family);

// The MPI of the launcher that started this process as a rank; nothing where
// none did. srun --mpi=pmi2 counts as MPICH's, --mpi=pmix as Open MPI's.
std::optional<MpiFamily> launcher_mpi(const Environment& env);

struct ChosenMpi {
  MpiFamily family = MpiFamily::kOpenMpi;
  std::string by;  // "launch.mpi", "the launcher's": why this one
};
// The MPI that this process loads: the config's (`wanted`), else its
// launcher's, else that of `mpirun`.
ChosenMpi choose_mpi(std::optional<MpiFamily> wanted, const Environment& env,
                     std::optional<MpiFamily> mpirun = {});

// A launcher that speaks to its ranks in a way that `family` does not know, so
// that MPI_Init would fail in thirty lines: the message with the right command,
// or empty.
std::string launcher_problem(const Environment& env, MpiFamily family);

// What to do where the library of `family` cannot be used, though this process,
// a rank or none, needs it.
std::string library_hint(const Environment& env, MpiFamily family);

// How an MPI names itself: "mpirun (Open MPI) 4.1.4", "HYDRA build details:
// Version: 5.0.2", "MPICH Version: 5.0.2", "CRAY MPICH version 8.1.25",
// "Intel(R) MPI Library 2021.9".
struct MpiName {
  std::optional<MpiFamily> family;  // nothing: it is not known
  std::string product, version;     // "Intel MPI", "2021.9"
  std::string text() const { return product + " " + version; }
};
MpiName mpi_name_in(const std::string& text);

}  // namespace chexnet
