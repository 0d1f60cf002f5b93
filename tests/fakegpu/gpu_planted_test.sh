#!/usr/bin/env bash
# Mistakes that a GPU would turn into wrong numbers now and then are planted in the program, and each is found each time.
source tests/fakegpu/lib.sh
quick=("${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=6 --set launch.bucket_mb=4)
more=()
finds() {  # finds TEXT CODE RANKS MESSAGE VARIABLE=VALUE...
  local text=$1 code=$2 ranks=$3 message=$4 rc=0; shift 4
  env "$@" mpirun --map-by socket --oversubscribe "${root[@]}" -np "$ranks" "$program" train "$small" "${quick[@]}" "${more[@]}" --out "$scratch/${text// /-}" >"$scratch/log" 2>&1 || rc=$?
  check "$text: found (exit $rc)" [ $rc = "$code" ]
  check "$text: $message" grep -qE -- "$message" "$scratch/log"
  [ "$failures" = 0 ] || tail -n 20 "$scratch/log"
}
check "without a mistake nothing is found" mpi 2 train "$small" "${quick[@]}" --out "$scratch/good" 2>"$scratch/log"
finds "a host read of device memory" 97 1 "the host touched device memory" FAKE_GPU_READ_AT=5000
# Of the second step's eleven waits for an event, one of each kind. (Its tenth repeats another: two buckets end with backward.)
finds "a batch that is copied too early" 98 2 "a copy from pinned memory .*, and no event orders the two" FAKE_CUDA_FORGET_STREAM_WAIT=11
finds "a batch that is read too early" 98 2 "reads what a copy from pinned memory .*, and no event orders the two" FAKE_CUDA_FORGET_STREAM_WAIT=12
finds "a gradient that travels too early" 98 2 "ncclAllReduce .* reads what .*, and no event orders the two" FAKE_CUDA_FORGET_STREAM_WAIT=13
finds "a mean that is read too early" 98 2 "reads what ncclAllReduce .* writes, and no event orders the two" FAKE_CUDA_FORGET_STREAM_WAIT=21
# The host's first wait is for the first batch's copy, which takes longer than the launch of a step (ResNet-50's, which CUDA's queue of
# 1,024 launches holds): a ring of two batches fills the batch's memory anew at once.
more=(--set data.prefetch=1 --set run.log_every=1000 --set model.arch=resnet50)
finds "a slot that is freed too early" 98 1 "the host wrote to pinned memory before its copy" FAKE_CUDA_FORGET_HOST_WAIT=0 FAKE_GPU_COPY_US=3000000
finish
