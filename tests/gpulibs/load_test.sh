#!/usr/bin/env bash
# The CUDA side of this build against the libraries of a GPU run, on any machine: it opens, and LibTorch has a CUDA kernel for each
# operator of a step. Needs what scripts/setup --gpu unpacks; for the other variant: ctest --test-dir build/cuda12 -L gpulibs
CHEXNET_BUILD=${CHEXNET_BUILD:-$PWD/build/release}
[ -e "$CHEXNET_BUILD/torch/libcudnn.so.9" ] || { echo "skipped: the GPU libraries are not unpacked (scripts/setup --gpu)"; exit 77; }
exec "$CHEXNET_BUILD/test_gpulibs"
