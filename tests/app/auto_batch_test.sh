#!/usr/bin/env bash
# train.batch: auto: the run prints the batch that it chose, trains with it, and a resume keeps it.
source tests/lib.sh
check "a run with an automatic batch" "$program" train "$small" --out "$scratch/run" --set train.batch=auto --set train.max_steps=2 2>"$scratch/log"
batch=$(sed -n 's/^  batch: //p' "$scratch/run/config.yaml" | head -n 1)
check "its config names a number" test "${batch:-0}" -gt 1
check "the settings name it" grep -q "$batch images on 1 rank" "$scratch/log"
check "a warning says that the config alone does not repeat it" grep -q "auto chose $batch images by the memory" "$scratch/log"
check "and the engine" grep -q "own engine, fp32" "$scratch/log"
check "a resume keeps it" "$program" train "$small" --out "$scratch/run" --set train.batch=auto --set train.max_steps=3 --resume yes 2>"$scratch/log"
check "and chooses nothing" eval '! grep -q "auto chose" "$scratch/log"'
check "also in its settings" grep -q "$batch images on 1 rank" "$scratch/log"
refused 2 "train.batch: $batch -> 7" train "$small" --out "$scratch/run" --set train.batch=7 --set train.max_steps=4 --resume yes
finish
