#!/usr/bin/env bash
# Builds test_base for AArch64 on x86-64 and runs it under QEMU in user mode: instructions are emulated, kernel and times are
# this machine's. Set up by scripts/setup --aarch64. On two idle cores it takes about an hour, most of it to build.
set -euo pipefail
[ -e third_party/.aarch64 ] || { echo "skipped: run scripts/setup --aarch64"; exit 77; }
scripts/build aarch64 test_base
system=$(cat third_party/.aarch64)
on() { echo "aarch64: $1, ${*:2}"; qemu-aarch64-static -cpu "$1" -L "$system" build/aarch64/test_base "${@:2}"; }

# SVE of 256 bits, which is not what QEMU has by itself: so all sets of kernels are tested.
# QEMU sets no limit of memory (RLIMIT_DATA). And this kernel does not start a program for AArch64, as a test of two
# processes asks of it: the second one ends at once, the first waits for it without end.
others='~[.]~"an image that does not fit in memory*"~"the fake all-reduce between two processes"'
# QEMU 7.2 loses 18 MB of its own memory a second, so some files at a time.
mapfile -t files < <(find tests -name '*_test.cpp' -printf '%f\n' | sed 's/\.cpp$//' | sort)
for ((begin = 0; begin < ${#files[@]}; begin += 30)); do
  on max,sve-default-vector-length=32 -# "$(printf "[#%s]$others," "${files[@]:begin:30}")"
done
# A processor without SVE and without the dot products of bf16 takes the generic set.
on cortex-a57 'convolutions*'
