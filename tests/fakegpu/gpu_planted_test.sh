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
finds "a forgotten event" 98 2 "no event orders the two" FAKE_CUDA_FORGET_STREAM_WAITS=8
# The host's first wait is for the first batch's copy, which takes longer than the launch of a step: a ring of two batches fills
# the batch's memory anew at once.
more=(--set data.prefetch=1 --set run.log_every=1000)
finds "a slot that is freed too early" 98 1 "the host wrote to pinned memory before its copy" FAKE_CUDA_FORGET_HOST_WAIT=0 FAKE_GPU_COPY_US=3000000
finish
