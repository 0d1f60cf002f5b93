#!/usr/bin/env bash
# Killed and stopped by the hundred: 200 trials of the kill storm on four ranks, 200 of the signal storm. About 90 minutes on two cores;
# CHEXNET_STORM_TRIALS and CHEXNET_STORM_SEED choose others. The figures are in docs/robustness.md.
source tests/lib.sh
trials=${CHEXNET_STORM_TRIALS:-200} seed=${CHEXNET_STORM_SEED:-1}
for storm in kill_storm signal_storm; do
  check "$storm: $trials trials of seed $seed" scripts/robustness/$storm --program "$program" --folder "$scratch" \
    --trials "$trials" --seconds 100000 --seed "$seed" --json "$scratch/$storm.json"
  check "$storm: all of them" grep -q "\"trials\": $trials," "$scratch/$storm.json"
done
finish
