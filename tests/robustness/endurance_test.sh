#!/usr/bin/env bash
# Memory, descriptors and threads of two ranks stay what they are while they train, evaluate and write checkpoints; and doctor names
# each of eight ranks. tests/slow/load_and_length_long_test.sh goes on for 200,000 steps.
# Shorter runs hold too few samples of a half.
source tests/lib.sh
check "nothing grows on two ranks" scripts/robustness/endurance --program "$program" --folder "$scratch" --ranks 2 --steps 640 --events 32
check "doctor names eight ranks" scripts/robustness/load --jobs ranks --ranks 8 --program "$program" --folder "$scratch"
finish
