#!/usr/bin/env bash
# In the steady state of training and of an evaluation the host never waits until a GPU has nothing left to do, and the ranks agree
# about a step while the GPU computes the one before. The fake GPU counts, step by step.
source tests/fakegpu/lib.sh
export FAKE_CUDA_LAZY=1 FAKE_CUDA_DELAY_US=0  # a GPU that is slower than any host: it only does what somebody waits for
quick=("${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=7 --set launch.bucket_mb=4 --set run.log_every=1000 --set train.record_step=off)

in_order() { python3 tests/support/order_checks.py "$@"; }
for run in 1-fp32 2-fp16; do
  FAKE_GPU_STEP_LOG=$scratch/$run mpi ${run%-*} train "$small" "${quick[@]}" --set train.precision=${run#*-} --out "$scratch/run-$run" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
  check "$run: no step waits for the GPU" in_order steady "$scratch/$run".*
done
FAKE_GPU_STEP_LOG=$scratch/evaluation mpi 2 train "$small" "${quick[@]}" --set train.max_steps=1 --set eval.splits=[test] --set eval.batch=4 --out "$scratch/run" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
check "no batch of an evaluation waits for the GPU" in_order evaluation "$scratch/evaluation".*
finish
