#!/usr/bin/env bash
# The allocations of a step, counted from outside: a network of half as many layers again takes as many blocks, so the engine
# takes none.
source tests/lib.sh
cc -O1 -shared -fPIC tests/support/count_calls.c -o "$scratch/count.so" -ldl || { echo "FAILED: the counter does not build"; exit 1; }
count() {  # count MODEL THREADS STEPS: allocations of a run
  COUNT_CALLS=$scratch/calls LD_PRELOAD=$scratch/count.so "$program" bench step --model "$1" --batch 2 --size 32 --set launch.threads="$2" --steps "$3" --json >/dev/null 2>&1
  cut -d' ' -f2 "$scratch/calls"
}
# Two threads of a busy machine wait for each other: one pair of networks is enough.
for each in densenet121:2 densenet169:2 resnet50:1 resnet101:1; do
  model=${each%:*} threads=${each#*:}
  per_step=$((($(count $model $threads 3) - $(count $model $threads 1)) / 2))
  echo "$model: $per_step allocations a step (loss, optimizer, timing)"
  case $model in
    densenet121 | resnet50) fewer=$per_step ;;
    *) check "no more than the smaller network" test "$per_step" -le $((fewer + 2)) ;;
  esac
  check "few" test "$per_step" -le 400
done
finish
