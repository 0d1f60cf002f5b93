#!/usr/bin/env bash
# A hundred flipped bits on three ranks, and on four. CHEXNET_STORM_TRIALS and CHEXNET_STORM_SEED choose others. The figures are in
# docs/robustness.md.
source tests/lib.sh
trials=${CHEXNET_STORM_TRIALS:-100} seed=${CHEXNET_STORM_SEED:-1}
for ranks in 3 4; do
  check "$ranks ranks: $trials flipped bits" scripts/robustness/bit_flips --program "$program" --folder "$scratch" --ranks $ranks \
    --trials "$trials" --seconds 100000 --seed "$seed" --json "$scratch/bit_flips-$ranks.json"
  check "$ranks ranks: all of them" grep -q "\"found\": $trials\b" "$scratch/bit_flips-$ranks.json"
done
finish
