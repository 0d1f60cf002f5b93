#!/usr/bin/env bash
# A run that still looks for its images stops on request, and status knows that it is one. So does the drawing of a set.
source tests/lib.sh
# Archives whose reads take half a second.
gcc -shared -fPIC -o "$scratch/slow_reads.so" tests/support/slow_reads.c -ldl
slow=(env SLOW_NAME=.tar SLOW_MS=500 "LD_PRELOAD=$scratch/slow_reads.so")
for ranks in 1 2; do
  run=$scratch/run$ranks tars=$scratch/tars$ranks log=$scratch/log$ranks
  mkdir "$tars"
  for i in $(seq 60); do echo "$i" >"$scratch/$i.png"; tar -cf "$tars/$i.tar" -C "$scratch" "$i.png"; done
  start=("${slow[@]}" "$program")
  [ $ranks = 1 ] || start=(mpirun --map-by socket --oversubscribe "${root[@]}" -np 2 "${slow[@]}" "$program")
  "${start[@]}" train "$small" --set "data.images=[$phantom/images,$tars]" --out "$run" 2>"$log" & job=$!
  for _ in $(seq 600); do grep -q 'indexing 60 archives' "$log" && break; sleep 0.1; done
  rc=0; "$program" status "$run" 2>"$scratch/status" >/dev/null || rc=$?
  check "$ranks: status of a run that looks for its images (exit $rc)" grep -q 'a run is starting here' "$scratch/status"
  kill -USR1 $job
  rc=0; wait $job || rc=$?
  check "$ranks: it stops with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks: it says so" grep -q 'before the first step: nothing was trained by this start' "$log"
  check "$ranks: no process is left" no_process "$run"
done
for signal in TERM INT; do
  set=$scratch/drawn-$signal
  "$program" phantom "$set" --images 100000 --size 512 --threads 1 2>"$scratch/log" & job=$!
  await "a drawing" bash -c "ls '$set/images' | grep -q png"
  kill -$signal $job
  rc=0; wait $job || rc=$?
  check "phantom: $signal ends it with 75 (exit $rc)" [ $rc = 75 ]
  check "phantom: it says so, and nothing stays" eval 'grep -q "stopped on request; nothing was written" "$scratch/log" && [ ! -e "$set" ]'
done
finish
