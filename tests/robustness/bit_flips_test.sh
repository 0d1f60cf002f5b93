#!/usr/bin/env bash
# A bit of one rank's weights is flipped in its memory: the rank is named, and the run goes back to its last checkpoint and ends as
# undisturbed. With two ranks both are named. scripts/robustness/bit_flips does it by the hundred (label slow).
source tests/lib.sh
for ranks in 3 2; do
  check "$ranks ranks: a flipped bit is found, and the end is the undisturbed one" \
    scripts/robustness/bit_flips --program "$program" --folder "$scratch" --ranks $ranks --trials 1 --seed 3 --within 300
done
finish
