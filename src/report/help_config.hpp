// A run's config for a help desk. Its free texts can hold hosts, secrets and
// folders: they are left out, and are removed from other texts too.
#pragma once

#include <string>

#include "chexnet/report/redaction.hpp"

namespace chexnet {

// The keys of the table of options whose values are numbers, switches or one of
// fixed choices, as they are. Any other value is TEXT, a list of them says how
// many, unknown keys are counted.
std::string config_for_help(const std::string& yaml);

// Hides paths, the run's name and the words of launch.mpi_args. Names of
// columns and findings are not hidden.
void hide_config(const std::string& yaml, Redaction& redaction);

}  // namespace chexnet
