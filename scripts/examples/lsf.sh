#!/bin/bash
#BSUB -J "chexnet"
#BSUB -n 8
#BSUB -R "span[ptile=4]"
#BSUB -R "affinity[core(10)]"
#BSUB -gpu "num=4"
#BSUB -W 24:00
#BSUB -wa 'USR1'
#BSUB -wt '1'
#BSUB -r
#BSUB -Q "99"
#BSUB -o /dev/null
# Training under IBM Spectrum LSF, on two hosts of four GPUs: bsub <FILE. An example, not tested by us: no LSF was at hand.
# A slot is a rank: -n counts them all, span[ptile=] those of a host, affinity[core()] their cores; -gpu counts for each host.
# -wt is in minutes: leave -wa and -wt out of jobs below ten. An array (-J "chexnet[1-3]") takes a case of $LSB_JOBINDEX
# for `run` and `arguments`. The program asks LSF for the time left and stops itself before it ends; -wa and USR2, which LSF
# sends at the run limit ten minutes before it kills, are safety nets. -Q: exit code 99 asks for another start. -r: LSF starts
# the job again when its host fails. bkill sends INT and TERM to each process, also to mpirun, which kills the ranks: such a
# run goes back to its last checkpoint.
# Of a job that it starts again LSF throws the output away.
exec >>chexnet-"$LSB_JOBID".out 2>&1
# Where Open MPI was built without LSF, its daemons reach the other hosts by LSF's own remote shell.
if command -v blaunch >/dev/null; then export OMPI_MCA_plm_rsh_agent=blaunch PRTE_MCA_plm_ssh_agent=blaunch; fi
# Lines of a site (module load) stand above this one: what they source may read variables that are not set.
set -u

program=(chexnet-train)
arguments=(train configs/chexnet_densenet121.yaml)
run=runs/chexnet_densenet121
max_requeues=20
history=$run/requeues
# LSF does not say how often it started a job.
history=$history-$LSB_JOBID
restarts=$(grep -sc '' -- "$history"); restarts=${restarts:-0}
command=("${program[@]}" "${arguments[@]}" --out "$run" --resume auto)

# USR1 asks for a checkpoint and exit code 75; TERM (a canceled job) too, but is not followed by another start.
canceled=no
"${command[@]}" &
pid=$!
trap 'kill -USR1 "$pid" 2>/dev/null' USR1
trap 'kill -USR1 "$pid" 2>/dev/null' USR2
trap 'canceled=yes; kill -USR1 "$pid" 2>/dev/null' INT
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
trap '' USR2 INT

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
echo "exit $code at checkpoint $place: job $LSB_JOBID is requeued"
code=99
exit "$code"
