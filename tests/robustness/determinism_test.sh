#!/usr/bin/env bash
# Two ranks that train from a pack end with the same weights, killed and resumed or not, on AVX2 and on AVX-512 (where the processor
# has both). scripts/robustness/determinism tries everything with everything (label slow).
source tests/lib.sh
check "runs of the same images end with the same weights" \
  scripts/robustness/determinism --program "$program" --folder "$scratch" --ranks 2 --threads 1 --containers pack
ATEN_CPU_CAPABILITY=avx1024 refused 2 "no instruction set 'avx1024' on this processor" train "$small" --out "$scratch/unknown"
finish
