#!/usr/bin/env bash
# Training on fake GPUs is training by ATen's operators on the CPU, on 1, 2 and 4 ranks; gradients go through the real
# communicator.
source tests/fakegpu/lib.sh
# A device has the learning rate in fp32: one that is equal there.
train() {  # train RANKS NAME ARGUMENTS...
  local ranks=$1 name=$2; shift 2
  mpi "$ranks" train "$small" --set train.max_steps=3 --set train.lr=0.0009765625 --set launch.bucket_mb=4 --out "$scratch/$name" "$@" 2>"$scratch/log-$name" || { cat "$scratch/log-$name"; exit 1; }
}
same() { check "$1" look "near_runs(a, b, $3, $3)" "$scratch"/{cpu,fake}-"$2"; }

train 1 fake-fp64 "${fake[@]}" --set train.precision=fp64
train 1 cpu-fp64 "${cpu[@]}" --set train.precision=fp64
same "fp64: losses and parameters within 1e-12" fp64 1e-12
check "fp64: the same scores" cmp "$scratch/cpu-fp64/predictions_test.csv" "$scratch/fake-fp64/predictions_test.csv"

# The command, on all ranks' GPUs.
scores() {  # scores RANKS NAME ARGUMENTS...: of fake-fp64's weights
  mpi "$1" evaluate "$scratch/fake-fp64" --out "$scratch/$2.csv" "${@:3}" >/dev/null 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
}
scores 1 scores-cpu "${cpu[@]}"
scores 4 scores-4 "${fake[@]}" --set train.precision=fp64
check "evaluate on 4 GPUs, fp64: within 1e-12" look 'assert len(a) > 39; near_tables(a, b, 1e-12)' "$scratch"/scores-{cpu,4}.csv

# Our kernels' form of BatchNorm, and NCCL, sum in another order. The differences stay small where a BatchNorm has more than a
# few values, and without Adam, which makes a step of a gradient of any size.
quiet=(--set train.optimizer=sgd --set eval.splits=[] --set data.val_fraction=0 --set data.resize=72 --set data.crop=64)
together() {  # together RANKS PRECISION STEPS BOUND ARGUMENTS...
  train "$1" "fake-$1-$2" "${fake[@]}" "${quiet[@]}" --set train.precision="$2" --set train.max_steps="$3" "${@:5}"
  train "$1" "cpu-$1-$2" "${cpu[@]}" "${quiet[@]}" --set train.precision="$2" --set train.max_steps="$3" "${@:5}"
  same "$1 rank(s), $2, $3 steps: within $4" "$1-$2" "$4"
}
together 1 fp32 1 3e-6
# Maps of 37, 19 and 9 pixels before the pools: a last row is in a window alone, or in none.
together 2 fp32 1 3e-6 --set train.accumulate=2 --set data.crop=73 --set data.resize=80
together 4 fp64 2 1e-12
ln -s cpu-1-fp32 "$scratch/cpu-shared-fp32"
train 2 fake-shared-fp32 "${fake[@]}" "${quiet[@]}" --set train.max_steps=1 --set model.sync_batchnorm=true
same "2 ranks, fp32, synchronized BatchNorm, one step: 1 rank's within 3e-6" shared-fp32 3e-6
quiet+=(--set train.precision=fp64)
train 2 fake-shared "${fake[@]}" "${quiet[@]}" --set model.sync_batchnorm=true
train 1 cpu-shared "${cpu[@]}" "${quiet[@]}"
same "2 ranks, fp64, synchronized BatchNorm: 1 rank's within 1e-10" shared 1e-10
check "the communicator is NCCL's" grep -q "NCCL .* for gradients" "$scratch/log-fake-2-fp32"

train 2 fake-wire "${fake[@]}" --set eval.splits=[] --set data.val_fraction=0 --set train.max_steps=1 --set launch.gradient_compression=bf16
train 2 fake-exact "${fake[@]}" --set eval.splits=[] --set data.val_fraction=0 --set train.max_steps=1
check "gradients over bf16 are near the exact ones" look 'near_runs(a, b, 1e-6, 3e-3)' "$scratch"/fake-{exact,wire}
program=$CHEXNET_BUILD/chexnet-train refused 2 "'launch.device' = 'fake' is not known" train "$small" "${fake[@]}"
finish
