#!/usr/bin/env bash
# The bytes that kernels of a step read and write, each operand once: of DenseNet-121 in bf16 at 224 px, by kind, per image. It is what
# a step of two images moves less what a step of one moves, so weights and the optimizer are not in it.
source tests/fakegpu/lib.sh
export FAKE_CUDA_LAZY=1 FAKE_CUDA_DELAY_US=0  # what nobody waits for is not computed
for images in 1 2; do
  # Its exit code does not count: bench leaves while the fake GPU may still compute with libraries that are being unloaded.
  FAKE_GPU_TRAFFIC=$scratch/$images "$program" bench step --device cuda --precision bf16 --size 224 --batch $images --steps 1 --json >"$scratch/json" 2>"$scratch/err.txt"
  check "a step of $images is timed" grep -q images_per_s "$scratch/json"
done
check "a step moves at most 335 MB an image, none for concatenations" python3 tests/support/traffic.py "$scratch"/{1,2} 335
finish
