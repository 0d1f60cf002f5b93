#!/usr/bin/env bash
# Some trials of the kill storm, of a fixed seed: what scripts/robustness/kill_storm does by the hundred (label slow).
source tests/lib.sh
check "killed runs resume to the same end and leave nothing behind" \
  scripts/robustness/kill_storm --program "$program" --folder "$scratch" --within 60 --ranks 2 --trials 3 --seconds 6 --seed 5
finish
