#!/usr/bin/env bash
# Two ranks that meet on one GPU are told why: too many ranks, a list of MIG devices, of which CUDA shows a process the
# first, or MIG devices of one GPU. And the self-test of a first run on a GPU, and the clock that the bench uses.
source tests/fakegpu/lib.sh
export FAKE_CUDA_DEVICES=1
ranks() { mpi 2 train "$small" "${fake[@]}" --set train.max_steps=1 --out "$scratch/run" >/dev/null 2>"$scratch/err.txt"; }
says() {
  ranks && { echo "FAILED: two ranks ran on one GPU"; failures=$((failures + 1)); }
  check "$1" grep -qF -- "$1" "$scratch/err.txt"
}
says "Hint: start one rank per GPU: this host shows 1"
export CUDA_VISIBLE_DEVICES=MIG-11111111-2222-3333-4444-555555555555,MIG-11111111-2222-3333-4444-666666666666
says "alone: give each rank its own (srun --gpus-per-task=1)"
unset CUDA_VISIBLE_DEVICES
FAKE_CUDA_DEVICES=2 FAKE_GPU_MIG=1 says "two ranks are on MIG devices of one GPU, on which NCCL starts one rank alone"

# A step of more than a thousand kernels that take 0.2 ms each, launched without waiting for them.
FAKE_CUDA_DELAY_US=400 "$program" bench step --device cuda --precision fp32 --size 32 --batch 1 --steps 1 --json >"$scratch/bench" 2>"$scratch/err.txt"
check "a step lasts until its last kernel" look 'assert 200 < a["ms_per_step"]["median"] < 60000, a' "$scratch/bench"

# A GPU that this user has not trained on yet is compared with the CPU engine first, and not again.
export XDG_CACHE_HOME=$scratch/cache
first() { mpi 1 train "$small" "${fake[@]}" --set train.precision=auto --set train.max_steps=1 --out "$scratch/first-$1" 2>"$scratch/err.txt"; }
first 1
check "the first run makes the self-test" grep -q '\[self-test\] passed: ' "$scratch/err.txt"
# Without our kernels the run goes on by LibTorch's, which pass another self-test.
FAKE_GPU_KERNELS_PROBLEM='[kernels] libnvrtc.so.13 cannot be opened' first 3
check "a GPU without our kernels is told" grep -q 'warning: \[kernels\] libnvrtc.so.13 cannot be opened. On .* LibTorch.s kernels compute alone' "$scratch/err.txt"
check "and trains" test -e "$scratch/first-3/results.json"
check "by what was tested" grep -q '\[self-test\] passed: ' "$scratch/err.txt"
first 2
check "the second one does not" bash -c "! grep -q self-test '$scratch/err.txt'"
finish
