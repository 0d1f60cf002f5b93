#!/usr/bin/env bash
# The writers of a run crash at some of the calls that change a file, and some of these fail: all of it is in
# tests/slow/crash_points_long_test.sh.
set -u
source tests/lib.sh
crash() { "$source_folder/scripts/robustness/crash_points" --program "$program" --work "$scratch" "$@"; }
check "an index is whole, absent or made anew" crash --job old_index --images 8 --most 2 --kills 1 --faults 1 \
  --errors ENOSPC --seconds 300
check "a run goes on to the same weights, and a full disk leaves the old checkpoint" \
  crash --job train --images 20 --most 1 --kills 0 --faults 1 --again 10000 --errors ENOSPC --seconds 300
finish
