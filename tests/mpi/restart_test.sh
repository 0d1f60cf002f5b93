#!/usr/bin/env bash
# Ranks that are started again: with --resume in either spelling, from a caller that ignores SIGCHLD; a signal or a STOP file
# between two starts is a stop. A host file with one other host is used.
source tests/lib.sh
quick=(--ranks 2 --set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5 --set launch.timeout_s=20 --set launch.restarts=3)
wait_for_step() { await_step "$1" "$2" "$1.log"; }
kill_rank() { kill -9 "$(rank_processes "$1" "$2")"; }
# A run that must not end before we look: images come slowly after the first checkpoint, until `fast`.
slowly() { touch "$scratch/slowly"; slow_images 500 "$1/checkpoints/step-00000005/../../../slowly"; }
fast() { rm "$scratch/slowly"; slow=(); }

run=$scratch/again
slowly "$run"
"${slow[@]}" python3 -c "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])" \
  "$program" train "$small" "${quick[@]}" --out "$run" --resume=auto >"$run.log" 2>&1 & job=$!
wait_for_step "$run" 6; kill_rank "$run" 1; fast
wait $job; rc=$?
check "--resume=auto: the ranks start again and train to the end (exit $rc)" [ $rc = 0 ]
check "the post-mortem's sentence is said once" [ "$(grep -c "^.*Rank 1 on .* last good checkpoint" "$run.log")" = 1 ]
check "its post-mortem's command asks for --resume once" look 'assert a["resume"].count("--resume") == 1, a["resume"]' "$run/postmortem-1.json"
[ "$failures" = 0 ] || tail -n 20 "$run.log"

# The parent waits some seconds between two starts; its mpirun is gone then.
between() {  # NAME COMMAND...: 75, and no further start, when COMMAND is done between two starts
  local run=$scratch/$1 job rc; shift
  "$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 --out "$run" >"$run.log" 2>&1 & job=$!
  wait_for_step "$run" 6; kill_rank "$run" 0
  await "the parent waits between two starts" grep -q "starting the ranks again" "$run.log"
  parent=$job "$@"
  wait $job; rc=$?
  check "$(basename "$run") between two starts: exit 75 (exit $rc)" [ $rc = 75 ]
  check "and status calls it stopped" grep -q '"state": *"stopped"' <("$program" status "$run" --json)
  check "and the ranks are not started again" [ "$(grep -c '"event":"start"' "$run/metrics.jsonl")" = 1 ]
}
# Also when its exit code is decided, and it ends.
# shellcheck disable=SC2154 # by between
tell() { kill -USR1 "$parent"; while kill -TERM "$parent" 2>/dev/null; do :; done; }
between a-signal tell

# A rank that dies as the stop is requested: nobody else says that the run was stopped.
run=$scratch/dying
"$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 --out "$run" >"$run.log" 2>&1 & job=$!
wait_for_step "$run" 6; first=$(rank_processes "$run" 0); kill -STOP "$first"
stands_still() { [ -z "$(grep -L '^State:.T' /proc/"$1"/task/*/status)" ]; }
await "the rank stands still" stands_still "$first"
kill -USR1 $job
await "mpirun passes the signal on" is_told "$first" USR1
kill -9 "$first"
wait $job; rc=$?
check "a stop as a rank dies: exit 75 (exit $rc)" [ $rc = 75 ]
check "and status calls it stopped" grep -q '"state": *"stopped"' <("$program" status "$run" --json)
between a-STOP-file touch "$scratch/a-STOP-file/STOP"

# One rank has a parent too, when it may be started again.
run=$scratch/one
slowly "$run"
"${slow[@]}" "$program" train "$small" "${quick[@]:2}" --set train.max_steps=12 --out "$run" >"$run.log" 2>&1 & job=$!
wait_for_step "$run" 6; kill -SEGV "$(pgrep -P $job)"; fast
wait $job; rc=$?
check "one rank that crashed starts again and trains to the end (exit $rc)" [ "$rc/$(grep -c '"event":"restart"' "$run/metrics.jsonl")" = 0/1 ]

# A start that dies before it has checked the folder proves nothing about the run in it: the next one is refused as it would
# have been.
killed_at_once() {  # RUN [OPTION...]: its only rank, of the first start, as it reads the config; the exit code in rc
  local run=$1 job; shift
  touch "$scratch/slowly"; slow_images 3000 "$scratch/slowly"; slow+=(SLOW_NAME=small.yaml)
  "${slow[@]}" "$program" train "$small" "${quick[@]:2}" --out "$run" "$@" >"$run.log" 2>&1 & job=$!
  await "the parent starts a rank" pkill -9 -P $job
  fast; wait $job; rc=$?
}
# Another start has this one's folder, or the parent would refuse it before any rank.
cp -r "$run" "$scratch/older"; cp -r "$run" "$scratch/kept"
flock --no-fork "$scratch/older/.lock" sleep 600 & holder=$!
killed_at_once "$scratch/older" --set train.max_steps=24
kill $holder
check "the run of another start is not gone on with by a restart (exit $rc)" [ "$rc $(grep -c 'holds a run already' "$scratch/older.log") $(grep -c 'resume with' "$scratch/older.log")" = "4 1 0" ]
check "and is as it was" diff -r "$scratch/older" "$scratch/kept"
# An older STOP file was meant for an earlier start.
mkdir "$scratch/asked"; touch "$scratch/asked/STOP"
killed_at_once "$scratch/asked" --set train.max_steps=4
check "an old STOP file stops no restart (exit $rc)" [ "$rc $(grep -c 'starting the ranks again from the beginning' "$scratch/asked.log")" = "0 1" ]
touch "$scratch/asked/STOP"
killed_at_once "$scratch/asked" --resume auto --set train.max_steps=8
check "nor where a run goes on (exit $rc)" [ "$rc $(grep -c '"event":"restart"' "$scratch/asked/metrics.jsonl")" = "0 1" ]

# Before the ranks listen to signals: the mpirun that starts them is there (not the one that only tells its version, before
# which nothing has begun), MPI and LibTorch are still to come.
"$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 --out "$scratch/early" >"$scratch/early.log" 2>&1 & job=$!
await "mpirun starts" pgrep -P $job -f -- ' -np 2 '
kill -TERM $job; wait $job; rc=$?
check "TERM while the ranks start: exit 75 (exit $rc)" [ $rc = 75 ]
# The same in the folder of a run that goes on: here a lock stands for it.
cp "$scratch/one/metrics.jsonl" "$scratch/before.jsonl"
flock --no-fork "$scratch/one/.lock" sleep 600 & holder=$!  # one process, which the kill below ends
"$program" train "$small" "${quick[@]}" --out "$scratch/one" --resume auto >"$scratch/second.log" 2>&1 & job=$!
await "mpirun starts" pgrep -P $job -f -- ' -np 2 '
kill -TERM $job; wait $job; rc=$?
kill $holder
check "a second start that is stopped writes nothing there (exit $rc)" cmp "$scratch/one/metrics.jsonl" "$scratch/before.jsonl"
slow_images 200
"${slow[@]}" "$program" pack "$small" --out "$scratch/slow.pack" >"$scratch/pack.log" 2>&1 & job=$!
await "pack reads images" eval '[ "$(find /proc/$job/fd -lname "*.png")" ]'
kill -TERM $job; wait $job 2>/dev/null; rc=$?
check "TERM ends pack, which goes on when started again (exit $rc)" [ $rc = 143 ]
check "and does" bash -c "'$program' pack '$small' --out '$scratch/slow.pack' 2>/dev/null && [ -s '$scratch/slow.pack' ]"
refused_by_rank=$(mpi 1 train "$small" --out "$scratch/dry" --dry-run 2>&1); rc=$?
check "a rank prints no command (exit $rc)" bash -c "[ $rc = 2 ] && [ ! -e '$scratch/dry' ] && grep -q 'is a rank already' <<<'$(grep -m1 error <<<"$refused_by_rank" | tr -d "'")'"

printf 'node-of-others slots=1\n' >"$scratch/single"
check "a host file with one other host for one rank is used" bash -c "'$program' train '$small' --hostfile '$scratch/single' --dry-run | grep -q '^mpirun --host node-of-others:1 .* -np 1 '"
printf 'node-of-others slots=2\n' >"$scratch/other"
check "a host file with one other host is given to mpirun" bash -c "'$program' train '$small' --hostfile '$scratch/other' --dry-run | grep -q -- '--host node-of-others:2 '"
printf 'node-of-others slots=2\nnode-of-nobody slots=2\n' >"$scratch/others"
check "and when --ranks leaves one of two" bash -c "'$program' train '$small' --hostfile '$scratch/others' --ranks 2 --ranks-per-node 2 --dry-run | grep -q -- '--host node-of-others:2,node-of-nobody:2 '"
printf '\xef\xbb\xbfnode-of-others:1\r\nnode-of-nobody slots=1 max_slots=2\r\nnode-of-others\r\n' >"$scratch/forms"
check "a host file in every form that is read" bash -c "'$program' train '$small' --hostfile '$scratch/forms' --set train.batch=12 --dry-run | grep -q -- '--host node-of-others:2,node-of-nobody:1 .* -np 3 '"
printf 'localhost slots=2\n' >"$scratch/here"
check "this host needs none" bash -c "'$program' train '$small' --hostfile '$scratch/here' --dry-run | grep -q '^mpirun --mca orte_execute_quiet 1 --map-by socket '"
finish
