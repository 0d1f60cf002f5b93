#!/usr/bin/env bash
# Forty runs with up to six flipped bits each on three ranks, and on four. CHEXNET_STORM_TRIALS and CHEXNET_STORM_SEED choose others.
# The figures are in docs/robustness.md.
source tests/lib.sh
trials=${CHEXNET_STORM_TRIALS:-40} seed=${CHEXNET_STORM_SEED:-1}
for ranks in 3 4; do
  check "$ranks ranks: $trials runs with flipped bits" scripts/robustness/bit_flips --program "$program" --folder "$scratch" --ranks $ranks \
    --trials "$trials" --seconds 100000 --seed "$seed" --json "$scratch/bit_flips-$ranks.json"
  check "$ranks ranks: all of them" python3 -c 'import json, sys
counts = json.load(open(sys.argv[1]))["counts"]
sys.exit(counts["found"] != counts["flips"] or counts["trials"] != int(sys.argv[2]))' "$scratch/bit_flips-$ranks.json" "$trials"
done
finish
