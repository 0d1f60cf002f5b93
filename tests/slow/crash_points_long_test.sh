#!/usr/bin/env bash
# Crashes and faults at every call that changes a file, of every writer (scripts/robustness/crash_points).
set -u
source tests/lib.sh
check "crashes and faults" "$source_folder/scripts/robustness/crash_points" --program "$program" --work "$scratch" \
  --every 10 --again 3 --seconds 1700
finish
