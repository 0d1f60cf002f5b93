#!/usr/bin/env bash
# A rank that stops at a random step is named, the ranks start again by themselves, and the run ends with the weights of an
# undisturbed one: CHEXNET_STOPS times (default 1), with CHEXNET_DEADLINE_S (default 10). How soon it is named is a matter of
# tests/comm/watch, whose time is simulated; here it is printed.
# Ranks wait for each other's checkpoints, and a disk that builds share has kept one for ten seconds: runs are in memory.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
source tests/lib.sh
stops=${CHEXNET_STOPS:-1}
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5 --set "launch.timeout_s=${CHEXNET_DEADLINE_S:-10}" --ranks 2)
shared_run whole "$scratch/whole" || exit 1
# Images come slowly until a rank stands still (only the first epoch, of twelve steps, reads any), so that the run is still
# there when we look.
slow_images 200 "$scratch/slowly"
for i in $(seq "$stops"); do
  run=$scratch/run-$i step=$((RANDOM % 5 + 2)) rank=$((RANDOM % 2))
  touch "$scratch/slowly"
  "${slow[@]}" "$program" train "$small" "${quick[@]}" --set launch.restarts=1 --timeline "$run.json" --out "$run" >"$run.log" 2>&1 & job=$!
  await_step "$run" "$step" "$run.log"
  sleep "0.$((RANDOM % 10))"  # anywhere in a step
  victim=$(rank_processes "$run" "$rank"); kill -STOP "$victim"
  stopped_s=$(date +%s.%N)
  rm "$scratch/slowly"
  wait $job; rc=$?
  text="stop $i: rank $rank at step $step"
  check "$text is named" look "
assert a['cause'] == 'stopped' and a['ranks'] == [$rank], a['what']
assert 'process $victim is stopped by a signal' in a['what'], a['what']
print(f'named after {os.stat(\"$run/postmortem-1.json\").st_mtime - $stopped_s:.1f} s')" "$run/postmortem-1.json"
  check "$text: the timeline of the other one shows its wait" python3 tests/support/order_checks.py last_spans "$run/timeline-rank-00$((1 - rank)).json" $((1 - rank))
  check "$text: the ranks of the second start have theirs" python3 -m json.tool "$run.json" "$run.pretty"
  check "$text: started again to the end (exit $rc)" [ $rc = 0 ]
  check "$text: the weights of the undisturbed run" cmp "$(weights "$scratch/whole")" "$(weights "$run")"
  check "$text: no process is left" no_process "$run"
  [ "$failures" = 0 ] || { tail -n 30 "$run.log"; break; }
done

# A job that is suspended as a whole, as Slurm does, longer than the deadline: no rank failed, and it goes on.
run=$scratch/suspended
touch "$scratch/slowly"
"${slow[@]}" "$program" train "$small" "${quick[@]}" --out "$run" >"$run.log" 2>&1 & job=$!
await_step "$run" 4 "$run.log"
mapfile -t ranks < <(rank_processes "$run")
kill -STOP "${ranks[@]}"
rm "$scratch/slowly"
await "the parent says that all ranks are stopped" \
  grep -qE "all ranks on this host have been stopped for [0-9]+ s .*kill -CONT (${ranks[0]} ${ranks[1]}|${ranks[1]} ${ranks[0]})" "$run.log"
kill -CONT "${ranks[@]}"
wait $job; rc=$?
check "a suspended job goes on to its end (exit $rc)" [ $rc = 0 -a ! -e "$run/postmortem.json" ]
check "with the weights of the undisturbed run" cmp "$(weights "$scratch/whole")" "$(weights "$run")"
# Those that are stopped together are named together.
run=$scratch/three
touch "$scratch/slowly"
"${slow[@]}" "$program" train "$small" "${quick[@]::${#quick[@]}-1}" 4 --out "$run" >"$run.log" 2>&1 & job=$!
await_step "$run" 2 "$run.log"
mapfile -t ranks < <(for rank in 1 2 3; do rank_processes "$run" $rank; done)
kill -STOP "${ranks[@]}"
rm "$scratch/slowly"
wait $job; rc=$?
check "three of four ranks that are stopped are named (exit $rc)" look "
assert a['cause'] == 'stopped' and a['ranks'] == [1, 2, 3] and a['exit_code'] == $rc == 7, a['what']
assert 'processes ${ranks[0]}, ${ranks[1]}, ${ranks[2]} are stopped' in a['what'], a['what']" "$run/postmortem.json"
[ $rc = 7 ] || tail -n 5 "$run.log"
finish
