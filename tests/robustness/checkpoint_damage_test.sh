#!/usr/bin/env bash
# The newest checkpoint is damaged in one of its files: a resume says so and goes on from the one before. All ways and all
# bits are in tests/slow/bit_damage_long_test.sh.
set -u
source tests/lib.sh
check "a damaged checkpoint is put aside" "$source_folder/scripts/robustness/damage" --program "$program" --no-bits --cases 2
finish
