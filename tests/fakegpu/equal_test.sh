#!/usr/bin/env bash
# Training on a fake GPU is training by ATen's operators on the CPU.
source tests/fakegpu/lib.sh
quick=(--set eval.splits=[test] --set train.max_steps=4)
for precision in fp32 fp64; do
  for where in fake cpu; do
    declare -n device=$where
    "$program" train "$small" "${quick[@]}" "${device[@]}" --set train.precision=$precision --ranks 1 --out "$scratch/$where-$precision" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
  done
done
check "fp32: losses and parameters within 1e-6" python3 tests/compare_runs.py "$scratch/cpu-fp32" "$scratch/fake-fp32" 1e-6 1e-6
check "fp64: losses and parameters within 1e-12" python3 tests/compare_runs.py "$scratch/cpu-fp64" "$scratch/fake-fp64" 1e-12 1e-12
check "fp64: the same scores" cmp "$scratch/cpu-fp64/predictions_test.csv" "$scratch/fake-fp64/predictions_test.csv"
finish
