# Sourced where programs of the preset asan run.
# libpciaccess keeps memory, and hwloc's plugin has unloaded it by the time leaks are looked for.
export HWLOC_PLUGINS_BLACKLIST=hwloc_pci.so
# A plug-in has its own copy of our static libraries, whose globals have the program's names.
export ASAN_OPTIONS=detect_leaks=1:detect_odr_violation=0
