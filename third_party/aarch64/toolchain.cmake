# Builds for AArch64 on x86-64 (the preset aarch64): the cross compiler, what scripts/setup --aarch64 unpacked as the
# system to build for, and QEMU in user mode to run what was built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(note ${CMAKE_CURRENT_LIST_DIR}/../.aarch64)
if(NOT EXISTS ${note})
  message(FATAL_ERROR "No system of AArch64 is set up. Run: scripts/setup --aarch64")
endif()
file(STRINGS ${note} CMAKE_SYSROOT LIMIT_COUNT 1)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# Every instruction QEMU has: the kernels of each set run.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu max -L ${CMAKE_SYSROOT})
# mpicc is this machine's; only the headers are needed.
set(MPI_SKIP_COMPILER_WRAPPER ON)
set(MPI_C_HEADER_DIR ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi/include)
