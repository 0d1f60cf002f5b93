#!/usr/bin/env bash
# The bytes that kernels of a step read and write, each operand once, and those that forward keeps for backward: of DenseNet-121 in bf16
# at 224 px, per image. They are those of two images less those of one, so weights and the optimizer are not in them.
source tests/fakegpu/lib.sh
export FAKE_CUDA_LAZY=1 FAKE_CUDA_DELAY_US=0  # the GPU does not compute what nobody waits for
for memory in speed recompute; do
  for images in 1 2; do
    # Its exit code does not count: bench leaves while the fake GPU may still compute with libraries that are being unloaded.
    FAKE_GPU_TRAFFIC=$scratch/$memory$images "$program" bench step --device cuda --precision bf16 --size 224 --batch $images --steps 1 --set model.memory=$memory --json >"$scratch/json" 2>"$scratch/err.txt"
    check "a step of $images is timed, model.memory=$memory" grep -q images_per_s "$scratch/json"
  done
done
check "a step moves at most 335 MB an image, none for concatenations, keeps at most 45, and has at most 900 kernels" python3 tests/support/traffic.py "$scratch"/speed{1,2} 335 45 900
check "with recompute it keeps at most 16, and moves at most 390" python3 tests/support/traffic.py "$scratch"/recompute{1,2} 390 16 1000
finish
