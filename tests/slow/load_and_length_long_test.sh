#!/usr/bin/env bash
# 200,000 steps (CHEXNET_ENDURANCE_STEPS chooses others), 10^6 rows and files, 10,000 shards, every odd name, 64 ranks, an hour of
# a simulated cluster (CHEXNET_SIMULATED_S), and 10^6 host-hours of it where a host is silent (CHEXNET_HOST_HOURS). The figures are in docs/robustness.md.
source tests/lib.sh
steps=${CHEXNET_ENDURANCE_STEPS:-200000}
check "$steps steps" scripts/robustness/endurance --program "$program" --folder "$scratch" --ranks 2 --steps "$steps" --events 400 \
  --every 2 --seconds 9000
check "load" scripts/robustness/load --rows 1000000 --files 112120,1000000 --shards 10000 --ranks 64 --each-name --program "$program" \
  --folder "$scratch"
check "a simulated cluster" env CHEXNET_LONG=1 CHEXNET_HOST_HOURS="${CHEXNET_HOST_HOURS:-1000000}" "$CHEXNET_BUILD/test_base" \
  "*among a thousand*,a thousand hosts*,who is called dead*,what is left out of a simulation*"
finish
