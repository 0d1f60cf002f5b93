# Sourced where programs of the presets asan and tsan run; those of tsan by setarch -R, as it wants a fixed address layout.
# libpciaccess keeps memory, and hwloc's plugin has unloaded it by the time leaks are looked for.
export HWLOC_PLUGINS_BLACKLIST=hwloc_pci.so
# A plug-in has its own copy of our static libraries, whose globals have the program's names.
# Without intercept_tls_get_addr=0 the leak sanitizer guesses where thread-local blocks of glibc begin: now and then it
# reads what is no address and ends with "Tracer caught signal 11". Those blocks are reached from the threads anyway.
export ASAN_OPTIONS=detect_leaks=1:detect_odr_violation=0:intercept_tls_get_addr=0
# A step takes ten times as long.
export CHEXNET_PATIENCE=10
# The thread sanitizer is told that forked tests start threads. hwloc and MPI are not built for it.
export TSAN_OPTIONS=die_after_fork=0
