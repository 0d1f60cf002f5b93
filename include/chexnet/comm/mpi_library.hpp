// The MPI library that ranks load, as it names itself before MPI is started.
#pragma once

#include <string>

namespace chexnet {

// "Open MPI v4.1.4". DeviceError when it cannot be loaded.
std::string loaded_mpi_library();

}  // namespace chexnet
