#!/usr/bin/env bash
# Every bit of small files flipped, random bits of large ones, and damaged checkpoints (scripts/robustness/damage).
set -u
source tests/lib.sh
check "damage is noticed" "$source_folder/scripts/robustness/damage" --build "$CHEXNET_BUILD" --program "$program" \
  --seconds 3600
finish
