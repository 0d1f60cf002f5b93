#!/usr/bin/env bash
# The unit tests built for AArch64, under QEMU.
set -eu
[ -e third_party/.aarch64 ] || { echo "skipped: run scripts/setup --aarch64"; exit 77; }
scripts/robustness/aarch64
