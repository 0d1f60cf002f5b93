#!/usr/bin/env bash
# Two ranks that train from a pack end with the same weights, killed and resumed or not, on AVX2 and on AVX-512 (where the processor
# has both). scripts/robustness/determinism tries everything with everything (label slow).
source tests/lib.sh
check "runs of the same images end with the same weights" \
  scripts/robustness/determinism --program "$program" --folder "$scratch" --ranks 2 --threads 1 --containers pack
if grep -q avx512f /proc/cpuinfo; then
  # 42 entries of the loss: LibTorch computes those that are left after whole vectors by other functions.
  for set in avx2 avx512; do
    ATEN_CPU_CAPABILITY=$set "$program" train "$small" --set train.precision=fp64 --set train.batch=3 --set train.max_steps=6 \
      --set data.resize=72 --set data.crop=64 --out "$scratch/$set" >/dev/null 2>"$scratch/log" || { tail -n 5 "$scratch/log"; exit 1; }
  done
  check "fp64 on AVX2 and on AVX-512: equal weights" cmp "$(weights "$scratch/avx2")" "$(weights "$scratch/avx512")"
fi
ATEN_CPU_CAPABILITY=avx1024 refused 2 "no instruction set 'avx1024' on this processor" train "$small" --out "$scratch/unknown"
finish
