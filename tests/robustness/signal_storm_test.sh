#!/usr/bin/env bash
# Some trials of the signal storm, of a fixed seed: what scripts/robustness/signal_storm does by the hundred (label slow).
source tests/lib.sh
check "runs that are asked to stop do, and resume to the same end" \
  scripts/robustness/signal_storm --program "$program" --folder "$scratch" --within 60 --trials 3 --seconds 6 --seed 5
finish
