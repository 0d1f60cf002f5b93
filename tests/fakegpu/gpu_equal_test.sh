#!/usr/bin/env bash
# Training on fake GPUs is training by ATen's operators on the CPU, on 1, 2 and 4 ranks; gradients go through the real
# communicator.
source tests/fakegpu/lib.sh
train() {  # train RANKS NAME ARGUMENTS...
  local ranks=$1 name=$2; shift 2
  mpi "$ranks" train "$small" --set train.max_steps=3 --set launch.bucket_mb=4 --out "$scratch/$name" "$@" 2>"$scratch/log-$name" || { cat "$scratch/log-$name"; exit 1; }
}
same() { check "$1" python3 tests/compare_runs.py "$scratch/cpu-$2" "$scratch/fake-$2" "$3" "$3"; }

for precision in fp32 fp64; do
  train 1 "fake-$precision" "${fake[@]}" --set train.precision=$precision
  train 1 "cpu-$precision" "${cpu[@]}" --set train.precision=$precision
done
same "fp32: losses and parameters within 1e-6" fp32 1e-6
same "fp64: losses and parameters within 1e-12" fp64 1e-12
check "fp64: the same scores" cmp "$scratch/cpu-fp64/predictions_test.csv" "$scratch/fake-fp64/predictions_test.csv"

# NCCL and MPI add the four up in another order; what follows from it stays small where a BatchNorm has more than two values.
quiet=(--set train.precision=fp64 --set train.optimizer=sgd --set eval.splits=[] --set data.val_fraction=0 --set data.resize=72 --set data.crop=64)
for ranks in 2 4; do
  train $ranks fake-$ranks "${fake[@]}" "${quiet[@]}"
  train $ranks cpu-$ranks "${cpu[@]}" "${quiet[@]}"
done
same "2 ranks, fp64: within 1e-12" 2 1e-12
same "4 ranks, fp64: within 1e-12" 4 1e-12
train 2 fake-shared "${fake[@]}" "${quiet[@]}" --set model.sync_batchnorm=true
train 1 cpu-shared "${cpu[@]}" "${quiet[@]}"
same "2 ranks, fp64, synchronized BatchNorm: 1 rank's within 1e-10" shared 1e-10
check "the communicator is NCCL's" grep -q "NCCL .* for gradients" "$scratch/log-fake-2"

train 2 fake-wire "${fake[@]}" --set eval.splits=[] --set data.val_fraction=0 --set train.max_steps=1 --set launch.gradient_compression=bf16
train 2 fake-exact "${fake[@]}" --set eval.splits=[] --set data.val_fraction=0 --set train.max_steps=1
check "gradients over bf16 are near the exact ones" python3 tests/compare_runs.py "$scratch/fake-exact" "$scratch/fake-wire" 1e-6 3e-3
program=$CHEXNET_BUILD/chexnet-train refused 2 "'launch.device' = 'fake' is not known" train "$small" "${fake[@]}"
finish
