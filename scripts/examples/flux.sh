#!/bin/bash
# flux: --job-name=chexnet
# flux: --nodes=2
# flux: --nslots=2
# flux: --cores-per-slot=40
# flux: --gpus-per-slot=4
# flux: --time-limit=86400s
# flux: --output=chexnet-{{id}}.out
# flux: --signal=USR1@60s
# Training under Flux, on two hosts of four GPUs: flux batch FILE. An example, not tested by us. A slot is a host. mpirun
# reaches other hosts by ssh; where Flux has flux-pmix, it can start the ranks itself:
#   command=(flux run --nodes=2 --ntasks=8 --cores-per-task=10 --gpus-per-task=1 -o pmi=pmix "${program[@]}" ...)
# Flux has no arrays: a sweep is a job for each run. The program asks Flux for the time left and stops itself before it ends;
# --signal is a safety net.
# Lines of a site (module load) stand above this one: what they source may read variables that are not set.
set -u

program=(chexnet-train)
arguments=(train configs/chexnet_densenet121.yaml)
run=runs/chexnet_densenet121
max_requeues=20
history=$run/requeues
restarts=${CHEXNET_SUBMISSION:-0}
# Flux does not tell an instance how many ranks it was asked for.
command=("${program[@]}" "${arguments[@]}" --ranks-per-node 4 --out "$run" --resume auto)

# USR1 asks for a checkpoint and exit code 75; TERM (a canceled job) too, but is not followed by another start.
canceled=no
"${command[@]}" &
pid=$!
trap 'kill -USR1 "$pid" 2>/dev/null' USR1
trap 'canceled=yes; kill -USR1 "$pid" 2>/dev/null' TERM
code=0
# A trapped signal ends `wait` early: wait until the program is gone, and take its exit code.
while :; do
  wait "$pid"; status=$?
  [ "$status" -eq 127 ] || code=$status
  kill -0 "$pid" 2>/dev/null || break
done
if [ "$code" -gt 128 ]; then
  wait "$pid"; status=$?
  [ "$status" -eq 127 ] || code=$status
fi
trap '' USR1 TERM

# Another start helps after these exit codes:
#   5 device, communication or start of ranks
#   7 a rank that hangs
#   9 storage that does not answer
#   75 stopped with a checkpoint
case $code in 5 | 7 | 9 | 75) ;; *) exit "$code" ;; esac
[ "$canceled" = no ] || exit "$code"
if [ "$restarts" -ge "$max_requeues" ]; then
  echo "no restart: $max_requeues were allowed" >&2
  exit "$code"
fi
# What an earlier job of this folder wrote says nothing of this one.
[ "$restarts" -gt 0 ] || rm -f -- "$history"
# So many restarts at the same checkpoint are enough. The program may have ended before it made its folder.
at_same_checkpoint=2
place=$(readlink "$run/checkpoints/last" 2>/dev/null || echo none)
if [ "$(tail -n "$at_same_checkpoint" "$history" 2>/dev/null | grep -cxF -- "$place")" -ge "$at_same_checkpoint" ]; then
  echo "no restart: $at_same_checkpoint restarts got no further than checkpoint $place" >&2
  exit "$code"
fi
mkdir -p -- "$run" && echo "$place" >>"$history"
script=$run/job.flux
[ "$restarts" -gt 0 ] || cp -- "$0" "$script"
# This script runs in a separate instance, which ends with it; the one around it has the queue.
if CHEXNET_SUBMISSION=$((restarts + 1)) flux --parent batch "$script"; then
  echo "exit $code at checkpoint $place: submitted again, $((restarts + 1)) of $max_requeues"
else
  echo "exit $code at checkpoint $place: flux refused another start; by hand: CHEXNET_SUBMISSION=$((restarts + 1)) flux batch $script" >&2
fi
exit "$code"
