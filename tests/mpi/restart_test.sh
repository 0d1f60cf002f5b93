#!/usr/bin/env bash
# Ranks that are started again: with --resume in either spelling, from a caller that ignores SIGCHLD; a signal or a STOP file
# between two starts is a stop. A host file with one other host is used.
source tests/lib.sh
quick=(--ranks 2 --set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5 --set launch.timeout_s=20 --set launch.restarts=3)
wait_for_step() { await_step "$1" "$2" "$1.log"; }
pid_of_rank() {  # RUN RANK
  python3 -c "
import os
for p in filter(str.isdigit, os.listdir('/proc')):
    try:
        env, cmd = open(f'/proc/{p}/environ').read(), open(f'/proc/{p}/cmdline').read()
    except OSError: continue
    if f'OMPI_COMM_WORLD_RANK=$2\0' in env and f'--out\0$1\0' in cmd + '\0': print(p); break
"; }
kill_rank() { kill -9 "$(pid_of_rank "$1" "$2")"; }

run=$scratch/again
python3 -c "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])" \
  "$program" train "$small" "${quick[@]}" --set train.max_steps=60 --out "$run" --resume=auto >"$run.log" 2>&1 & job=$!
wait_for_step "$run" 10; kill_rank "$run" 1
wait $job; rc=$?
check "--resume=auto: the ranks start again and train to the end (exit $rc)" [ $rc = 0 ]
check "the post-mortem's sentence is said once" [ "$(grep -c "^.*Rank 1 on .* last good checkpoint" "$run.log")" = 1 ]
check "its post-mortem's command asks for --resume once" python3 -c "
import json
resume = json.load(open('$run/postmortem-1.json'))['resume']
assert resume.count('--resume') == 1, resume"
[ "$failures" = 0 ] || tail -n 20 "$run.log"

# The parent waits some seconds between two starts; its mpirun is gone then.
between() {  # NAME COMMAND...: 75, and no further start, when COMMAND is done between two starts
  local run=$scratch/$1 job rc; shift
  "$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 --out "$run" >"$run.log" 2>&1 & job=$!
  wait_for_step "$run" 6; kill_rank "$run" 0
  for _ in $(seq 600); do pgrep -P $job >/dev/null || break; sleep 0.02; done
  parent=$job "$@"
  wait $job; rc=$?
  check "$(basename "$run") between two starts: exit 75 (exit $rc)" [ $rc = 75 ]
  check "and status calls it stopped" grep -q '"state": *"stopped"' <("$program" status "$run" --json)
  check "and the ranks are not started again" [ "$(grep -c '"event":"start"' "$run/metrics.jsonl")" = 1 ]
}
# The second one finds a parent whose exit code is decided.
tell() { kill -USR1 "$parent"; sleep 0.1; kill -TERM "$parent" 2>/dev/null || true; }
between a-signal tell

# A rank that dies as the stop is asked for: nobody else says that the run was stopped.
run=$scratch/dying
"$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 --out "$run" >"$run.log" 2>&1 & job=$!
wait_for_step "$run" 6; first=$(pid_of_rank "$run" 0); kill -STOP "$first"; kill -USR1 $job; sleep 0.2; kill -9 "$first"
wait $job; rc=$?
check "a stop as a rank dies: exit 75 (exit $rc)" [ $rc = 75 ]
check "and status calls it stopped" grep -q '"state": *"stopped"' <("$program" status "$run" --json)
between a-STOP-file touch "$scratch/a-STOP-file/STOP"

# One rank has a parent too, when it may be started again.
run=$scratch/one
"$program" train "$small" "${quick[@]:2}" --set train.max_steps=40 --out "$run" >"$run.log" 2>&1 & job=$!
wait_for_step "$run" 6; kill -SEGV "$(pgrep -P $job)"
wait $job; rc=$?
check "one rank that crashed starts again and trains to the end (exit $rc)" [ "$rc/$(grep -c '"event":"restart"' "$run/metrics.jsonl")" = 0/1 ]

# A start that dies before it has looked at the folder says nothing of the run in it: the next one is refused as it would have been.
killed_at_once() {  # RUN [OPTION...]: its only rank, of the first start; the exit code in rc
  local run=$1 job; shift
  "$program" train "$small" "${quick[@]:2}" --out "$run" "$@" >"$run.log" 2>&1 & job=$!
  for _ in $(seq 3000); do pkill -9 -P $job && break; sleep 0.01; done
  wait $job; rc=$?
}
cp -r "$run" "$scratch/older" && rm "$scratch/older/.lock"
cp -r "$scratch/older" "$scratch/kept"
killed_at_once "$scratch/older" --set train.max_steps=60
check "a finished run is not gone on with by a restart (exit $rc)" [ "$rc $(grep -c 'holds a run already' "$scratch/older.log") $(grep -c 'resume with' "$scratch/older.log")" = "4 1 0" ]
rm -f "$scratch/older/.lock"
check "and is as it was" diff -r "$scratch/older" "$scratch/kept"
# A STOP file from before asked an earlier start.
mkdir "$scratch/asked"; touch "$scratch/asked/STOP"
killed_at_once "$scratch/asked" --set train.max_steps=4
check "an old STOP file stops no restart (exit $rc)" [ "$rc $(grep -c 'starting the ranks again from the beginning' "$scratch/asked.log")" = "0 1" ]
touch "$scratch/asked/STOP"
killed_at_once "$scratch/asked" --resume auto --set train.max_steps=8
check "nor where a run goes on (exit $rc)" [ "$rc $(grep -c '"event":"restart"' "$scratch/asked/metrics.jsonl")" = "0 1" ]

# Before the ranks listen to signals: the mpirun that starts them is there (not the one that was asked for its version, before which
# nothing was begun), MPI and LibTorch are still to come.
"$program" train "$small" "${quick[@]}" --out "$scratch/early" >"$scratch/early.log" 2>&1 & job=$!
for _ in $(seq 600); do pgrep -P $job -f -- ' -np 2 ' >/dev/null && break; sleep 0.01; done
kill -TERM $job; wait $job; rc=$?
check "TERM while the ranks start: exit 75 (exit $rc)" [ $rc = 75 ]
# The same in the folder of a run that goes on: here a lock stands for it.
cp "$scratch/one/metrics.jsonl" "$scratch/before.jsonl"
flock --no-fork "$scratch/one/.lock" sleep 600 & holder=$!  # one process, which the kill below ends
"$program" train "$small" "${quick[@]}" --out "$scratch/one" --resume auto >"$scratch/second.log" 2>&1 & job=$!
for _ in $(seq 600); do pgrep -P $job -f -- ' -np 2 ' >/dev/null && break; sleep 0.01; done
kill -TERM $job; wait $job; rc=$?
kill $holder
check "a second start that is stopped writes nothing there (exit $rc)" cmp "$scratch/one/metrics.jsonl" "$scratch/before.jsonl"
gcc -shared -fPIC -o "$scratch/slow_reads.so" tests/support/slow_reads.c -ldl
SLOW_NAME=.png SLOW_MS=200 LD_PRELOAD=$scratch/slow_reads.so "$program" pack "$small" --out "$scratch/slow.pack" >"$scratch/pack.log" 2>&1 & job=$!
for _ in $(seq 600); do [ -e "$scratch/slow.pack.partial" ] && break; sleep 0.02; done
kill -TERM $job; wait $job 2>/dev/null; rc=$?
check "TERM ends pack, which goes on when started again (exit $rc)" [ $rc = 143 ]
check "and does" bash -c "'$program' pack '$small' --out '$scratch/slow.pack' 2>/dev/null && [ -s '$scratch/slow.pack' ]"
refused_by_rank=$(mpi 1 train "$small" --out "$scratch/dry" --dry-run 2>&1); rc=$?
check "a rank prints no command (exit $rc)" bash -c "[ $rc = 2 ] && [ ! -e '$scratch/dry' ] && grep -q 'is a rank already' <<<'$(grep -m1 error <<<"$refused_by_rank" | tr -d "'")'"

printf 'node-of-others slots=1\n' >"$scratch/single"
check "a host file with one other host for one rank is used" bash -c "'$program' train '$small' --hostfile '$scratch/single' --dry-run | grep -q '^mpirun --hostfile $scratch/single .* -np 1 '"
printf 'node-of-others slots=2\n' >"$scratch/other"
check "a host file with one other host is given to mpirun" bash -c "'$program' train '$small' --hostfile '$scratch/other' --dry-run | grep -q -- '--hostfile $scratch/other'"
printf 'node-of-others slots=2\nnode-of-nobody slots=2\n' >"$scratch/others"
check "and when --ranks leaves one of two" bash -c "'$program' train '$small' --hostfile '$scratch/others' --ranks 2 --ranks-per-node 2 --dry-run | grep -q -- '--hostfile $scratch/others'"
printf 'localhost slots=2\n' >"$scratch/here"
check "this host needs none" bash -c "'$program' train '$small' --hostfile '$scratch/here' --dry-run | grep -q '^mpirun --mca orte_execute_quiet 1 --map-by socket '"
finish
