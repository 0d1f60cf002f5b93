#!/usr/bin/env bash
# Four ranks on fake GPUs: however the run ends, its resume reaches the weights of the uninterrupted run, bit for bit.
source tests/fakegpu/lib.sh
quick=("${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set checkpoint.every_steps=3 --set train.max_steps=8 --set launch.bucket_mb=8)
start() { mpi 4 train "$small" "${quick[@]}" "$@" 2>>"$scratch/log"; }
wait_for_step() { await_step "$1" "$2" "$scratch/log"; }
same() { ends_alike "$1" "$scratch/whole" "$2"; }

start --out "$scratch/whole" || { cat "$scratch/log"; exit 1; }

start --out "$scratch/killed" & job=$!
wait_for_step "$scratch/killed" 4
pkill -9 -f -n -- "chexnet-train-fake train .*--out $scratch/killed"
wait $job; rc=$?
check "a killed rank ends the job with an error (exit $rc)" [ $rc -ne 0 ]
check "no process is left" no_process "$scratch/killed"
start --out "$scratch/killed" --resume auto || cat "$scratch/log"
same "kill -9 and resume" "$scratch/killed"

start --out "$scratch/usr1" & job=$!
wait_for_step "$scratch/usr1" 4
pkill -USR1 -f -- "mpirun .*--out $scratch/usr1"
wait $job; rc=$?
check "SIGUSR1 ends with 75 (exit $rc)" [ $rc = 75 ]
start --out "$scratch/usr1" --resume yes || cat "$scratch/log"
same "SIGUSR1 and resume" "$scratch/usr1"
finish
