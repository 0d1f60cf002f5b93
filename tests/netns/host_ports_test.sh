#!/usr/bin/env bash
# Two hosts that train together over Open MPI's TCP: a third one reaches no port of their ranks, of mpirun or of its daemon, and the
# byte that it sends to each that the kernel shows halts nothing. (Of launchers: where ranks may trace them, as root does.)
source tests/netns/lib.sh
command -v ss >/dev/null || { echo "skipped: no ss (iproute2)"; exit 77; }
printf "node1 slots=1\nnode2 slots=1\n" >hosts
run=$scratch/run
on node1 "$program" train "$small" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=1000000 \
  --set launch.timeout_s=30 --set "launch.mpi_args=[--mca, plm_rsh_agent, $cluster/nsrsh]" --hostfile hosts --out "$run" >"$run.log" 2>&1 & job=$!
await_step "$run" 2 "$run.log"
# Not the watchdog's, at an address.
ports_of() { on "$1" ss -ltnpH | grep -oE '(0\.0\.0\.0|\[::\]|\*):[0-9]+ .*' | sed -E 's/^[^ ]*:([0-9]+) .*"(.*)".*/\2 \1/' | sort -u; }
ports_of node1 >one; ports_of node2 >two
check "ranks, mpirun and its daemon listen: $(cat one two | tr '\n' ',')" eval 'grep -q mpirun one && grep -q orted two && grep -q chexnet one && grep -q chexnet two'
mapfile -t ports < <(sed 's/.* /10.99.0.1:/' one; sed 's/.* /10.99.0.2:/' two)
on node3 python3 "$source_folder/tests/support/stranger.py" "${ports[@]}" >reached & stranger=$!
for _ in $(seq 600); do [ ! -s reached ] || break; sleep 0.05; done
check "a host that is none of the run's reaches no port of it ($(cat reached))" grep -qx 0 reached
step=$(tail -n 1 "$run/metrics.jsonl" | grep -o '"step":[0-9]*' | head -n 1 | cut -d: -f2)
await_step "$run" $((step + 20)) "$run.log"
check "and training goes on" kill -0 $job
kill -USR1 "$(pgrep -of -- "--out $run")"; wait $job; rc=$?
check "to its end (exit $rc)" [ $rc = 75 ]
kill $stranger
finish
