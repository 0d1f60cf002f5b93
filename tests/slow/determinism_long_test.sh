#!/usr/bin/env bash
# 1, 2 and 4 ranks of 1 and 3 threads, five containers, killed and resumed or not, AVX2 and AVX-512. The table is in
# docs/robustness.md.
source tests/lib.sh
check "runs on as many ranks end with the same weights" \
  scripts/robustness/determinism --program "$program" --folder "$scratch"
finish
