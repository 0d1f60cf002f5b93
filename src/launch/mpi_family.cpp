#include "chexnet/launch/mpi_family.hpp"

#include <array>
#include <string_view>

#include "chexnet/core/text_format.hpp"

namespace chexnet {
namespace {

struct Product {
  std::string_view says;  // its version is the first number after it
  const char* name;
  MpiFamily family;
};
constexpr std::array<Product, 5> kProducts = {
    {{"Open MPI", "Open MPI", MpiFamily::kOpenMpi},
     {"Intel(R) MPI Library", "Intel MPI", MpiFamily::kMpich},
     {"CRAY MPICH version", "Cray MPICH", MpiFamily::kMpich},
     {"HYDRA build details", "MPICH", MpiFamily::kMpich},
     {"MPICH Version", "MPICH", MpiFamily::kMpich}}};

bool by_srun(const Environment& env) {
  return env("SLURM_STEP_ID") != nullptr ||
         env("SLURM_STEP_NUM_TASKS") != nullptr;
}

}  // namespace

const char* mpi_title(MpiFamily family) {
  return family == MpiFamily::kOpenMpi ? "Open MPI" : "MPICH";
}

MpiFamily other_mpi(MpiFamily family) {
  return family == MpiFamily::kOpenMpi ? MpiFamily::kMpich
                                       : MpiFamily::kOpenMpi;
}

// A rank's children inherit these variables, so a launcher's own variable goes
// before protocols that several launchers speak.
std::optional<MpiFamily> launcher_mpi(const Environment& env) {
  if (env("OMPI_COMM_WORLD_SIZE") != nullptr) return MpiFamily::kOpenMpi;
  if (env("HYDI_CONTROL_FD") != nullptr) return MpiFamily::kMpich;
  if (env("PMIX_RANK") != nullptr) return MpiFamily::kOpenMpi;
  for (const char* name : {"PMI_RANK", "PMI_FD", "PALS_RANKID"}) {
    if (env(name) == nullptr) continue;
    // Set by users whose Open MPI was built for Slurm's PMI.
    return env("OMPI_MCA_pmix") != nullptr ? MpiFamily::kOpenMpi
                                           : MpiFamily::kMpich;
  }
  return std::nullopt;
}

ChosenMpi choose_mpi(std::optional<MpiFamily> wanted, const Environment& env,
                     std::optional<MpiFamily> mpirun) {
  if (wanted) return {*wanted, "launch.mpi"};
  if (const auto launcher = launcher_mpi(env))
    return {*launcher, "the launcher's"};
  if (mpirun) return {*mpirun, "mpirun's"};
  return {};
}

std::string launcher_problem(const Environment& env, MpiFamily family) {
  const auto launcher = launcher_mpi(env);
  if (!launcher || *launcher == family) return {};
  if (family == MpiFamily::kOpenMpi && by_srun(env))
    return "[launch] srun started this rank by PMI-1 or PMI-2, which Open MPI "
           "does not speak. Hint: srun --mpi=pmix, or launch.mpi=auto";
  // Slurm's PMIx alone: an MPICH can be built for it.
  if (family == MpiFamily::kMpich && env("OMPI_COMM_WORLD_SIZE") == nullptr)
    return {};
  return formatted(
      "[launch] the launcher of {} started this rank, and launch.mpi={} asks "
      "for {}. Hint: launch.mpi=auto, or the mpirun of {}",
      mpi_title(*launcher), choice_name(family), mpi_title(family),
      mpi_title(family));
}

std::string library_hint(const Environment& env, MpiFamily family) {
  const std::string load =
      std::string("load the module of ") + mpi_title(family);
  if (!started_as_rank(env)) return load + "; one rank needs none";
  if (family == MpiFamily::kMpich && by_srun(env))
    return "srun started this rank by PMI-1 or PMI-2, which Open MPI does not "
           "speak: srun --mpi=pmix, or " +
           load;
  return formatted(
      "the launcher of {} started this rank: {}, or start it by the mpirun of "
      "{}",
      mpi_title(family), load, mpi_title(other_mpi(family)));
}

MpiName mpi_name_in(const std::string& text) {
  constexpr const char* kDigits = "0123456789";
  for (const auto& product : kProducts) {
    const auto at = text.find(product.says);
    if (at == std::string::npos) continue;
    MpiName found{product.family, product.name, ""};
    const auto begin = text.find_first_of(kDigits, at + product.says.size());
    if (begin == std::string::npos) return found;
    const auto end = text.find_first_not_of("0123456789.", begin);
    found.version =
        text.substr(begin, end == std::string::npos ? end : end - begin);
    return found;
  }
  return {};
}

}  // namespace chexnet
