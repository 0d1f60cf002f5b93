#!/usr/bin/env bash
# A GPU's memory: a batch that does not fit is named with what computes the same, train.batch: auto finds one that does, and the run
# says how much of it was used.
source tests/fakegpu/lib.sh
export FAKE_GPU_MEMORY_MB=400
run=("${fake[@]}" --set eval.splits=[test] --set train.max_steps=2)
FAKE_GPU_MEMORY_MB=200 refused 5 "the GPU has no room for a step of 128 images (train.batch=128, train.accumulate=1)" \
  train "$small" "${run[@]}" --set train.batch=128 --ranks 1 --out "$scratch/full"
check "and how many fit" grep -qE "Hint: [0-9]+ images at once fit: train.batch=[0-9]+, or train.accumulate=[0-9]+ computes" "$scratch/err.txt"
check "and what takes less memory" grep -q "; model.memory=recompute takes less memory" "$scratch/err.txt"
fitting=$(sed -nE 's/.*Hint: ([0-9]+) images at once fit.*/\1/p' "$scratch/err.txt")
fits() { FAKE_GPU_MEMORY_MB=200 "$program" train "$small" "${run[@]}" --set train.batch="$fitting" --ranks 1 --out "$scratch/fits" 2>"$scratch/log"; }
check "and so many do fit ($fitting)" fits
check "no fault of the program" bash -c '! grep -q "report it" "$1"' - "$scratch/err.txt"

finds() { "$program" train "$small" "${run[@]}" --set train.batch=auto --ranks 1 --out "$scratch/auto" --json >"$scratch/json" 2>"$scratch/log"; }
check "a batch that fits is found" finds
check "it says which" grep -qE "auto chose [0-9]+ images" "$scratch/log"
check "it is larger than one image" bash -c '[ "$(sed -nE "s/.*auto chose ([0-9]+) images.*/\1/p" "$1")" -gt 4 ]' - "$scratch/log"
check "the memory of a run is its GPU's" grep -q "peak GPU memory of a rank" "$scratch/log"
check "it is within what there is" look 'assert a["peak_bytes_of"] == "gpu" and 100e6 < a["peak_bytes"] <= 400 * 2**20, a' "$scratch/json"

small_gpu() { FAKE_GPU_MEMORY_MB=150 "$program" train "$small" "${run[@]}" --set train.batch=auto --ranks 1 --out "$scratch/little" 2>"$scratch/log"; }
check "on a little GPU too, where most of what is tried does not fit" small_gpu

two() { mpi 2 train "$small" "${run[@]}" --set train.batch=auto --out "$scratch/two" 2>"$scratch/log"; }
check "two ranks find one together" two
check "and say which" grep -qE "auto chose [0-9]+ images" "$scratch/log"
[ "$failures" = 0 ] || tail -n 30 "$scratch/log"
finish
