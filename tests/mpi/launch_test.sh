#!/usr/bin/env bash
# How ranks are started: by mpirun or by the program itself, bound to the right cores, over another messaging layer; the same
# weights each time.
source tests/lib.sh
machines=$source_folder/tests/launch/machine/machines
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set train.max_steps=6)
rows() { look 'for row in a["checks"]:
    if row["name"].startswith("rank "): print(row["level"], row["name"], row["text"])' -; }

# An mpirun that neither starts ranks nor ends, as Open MPI's does where it lacks descriptors: in the background of the next
# checks.
mkdir "$scratch/stuck"
printf '#!/bin/sh\n[ "$1" != --version ] || exec %s --version\ntrap "" TERM USR1\nsleep 600\n' "$(command -v mpirun)" >"$scratch/stuck/mpirun"
chmod +x "$scratch/stuck/mpirun"
PATH=$scratch/stuck:$PATH "$program" train "$small" "${quick[@]}" --ranks 2 --set launch.timeout_s=10 --out "$scratch/never" >"$scratch/never.log" 2>&1 & stuck=$!

# A simulated machine of two sockets, of this one's two CPUs: mpirun really binds, and the table says what the kernel says.
if [ "$(nproc)" -lt 2 ]; then echo "skipped: one core, where ranks cannot be bound apart"; else
  mpirun "${root[@]}" --mca hwloc_base_topo_file "$machines/two_sockets.xml" -x HWLOC_XMLFILE="$machines/two_sockets.xml" \
    --map-by socket -np 2 "$program" doctor --json 2>"$scratch/log" | rows >"$scratch/bound"
  cat "$scratch/bound"
  check "two sockets: a rank on each, and both right" [ "$(sed -E 's/ on? ?[^ ]+, / /; s/rank ([01]) [^,]+, /rank \1 /' "$scratch/bound" | tr '\n' '|')" = "PASS rank 0 cores 0, NUMA node 0: good|PASS rank 1 cores 1, NUMA node 0: good|" ]
  # Both ranks on one CPU: reported, or moved.
  taskset -c 0 mpirun "${root[@]}" --bind-to none --oversubscribe -np 2 "$program" doctor --json 2>"$scratch/log" | rows >"$scratch/fixed"
  check "ranks on one core are moved apart" grep -q "rank 1 .*cores 1, .*moved to 1" "$scratch/fixed"
  taskset -c 0 mpirun "${root[@]}" --bind-to none --oversubscribe -np 2 "$program" train "$small" "${quick[@]}" --set launch.bind=check --out "$scratch/checked" >"$scratch/log" 2>&1
  check "launch.bind=check only says so" grep -q "shares cores 0 with local rank.*launch.bind=fix moves it" "$scratch/log"
fi

mpi 2 train "$small" "${quick[@]}" --out "$scratch/mpirun" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/self" --timeline "$scratch/timeline.json" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
cp "$scratch/log" "$scratch/log.timeline"
check "mpirun -np 2 and self-launch give the same weights" cmp "$(weights "$scratch/mpirun")" "$(weights "$scratch/self")"
check "the messaging layer is named" grep -q "PML ob1" "$scratch/log"

# Each rank with another command.
apart() {  # apart ARGUMENTS...: two ranks, the second with data.flip=false
  mpirun --oversubscribe "${root[@]}" -np 1 "$program" "$@" : -np 1 "$program" "$@" --set data.flip=false >"$scratch/log" 2>&1
}
rc=0; apart train "$small" "${quick[@]}" --out "$scratch/apart" || rc=$?
check "ranks with different configs do not train (exit $rc)" eval '[ $rc = 2 ] && grep -q "rank 1 on .*another config than rank 0 on .*: data.flip: false, and not true" "$scratch/log"'
check "and leave no folder" [ ! -e "$scratch/apart" ]
rc=0; apart evaluate "$scratch/mpirun" --resamples 10 || rc=$?
check "nor score (exit $rc)" eval '[ $rc = 2 ] && grep -q "data.flip: false, and not true" "$scratch/log"'

"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/ucx" --set launch.network=ucx 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
check "the same over UCX" grep -q "PML ucx" "$scratch/log"
check "UCX and ob1 give the same weights" cmp "$(weights "$scratch/self")" "$(weights "$scratch/ucx")"
"$program" train "$small" --ranks 2 --out "$scratch/dry" --dry-run >"$scratch/dry.txt"
check "--dry-run prints mpirun's command and starts nothing" bash -c "grep -q '^mpirun --mca orte_execute_quiet 1 --map-by socket .*-np 2 ' '$scratch/dry.txt' && [ ! -e '$scratch/dry' ]"

# Buckets chosen by the ranks, and kept by the checkpoint.
tuned=("${quick[@]}" --set launch.bucket_mb=auto --set train.max_steps=60 --set checkpoint.every_steps=50)
"$program" train "$small" "${tuned[@]}" --ranks 2 --out "$scratch/tuned" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
chosen=$(sed -nE 's/.*gradient buckets of ([0-9]+) MB.*/\1/p' "$scratch/log")
check "bucket size chosen by measurement (${chosen:-none} MB), kept in the checkpoint" look "
assert a['summation_order']['bucket_mb'] == float('$chosen')" "$scratch/tuned/checkpoints/last/state.json"

# What every rank did and when.
check "the timeline has both ranks, layers, buckets, waits, in order" python3 tests/support/order_checks.py timeline "$scratch/timeline.json"
check "the end says how much of loading was hidden" grep -qE "loading [0-9.]+ ms, computing [0-9]+ ms, step [0-9]+ ms: [0-9]+ % of loading hidden" "$scratch/log.timeline"
# Some of its steps alone; and of a run that somebody looks at while it goes on, which changes no bit of it.
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/some" --timeline "$scratch/some.json" --steps 3:4 --json >"$scratch/some.out" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
check "--steps 3:4 records two steps, with the loader's threads" python3 tests/support/order_checks.py window "$scratch/some.json" 2
check "and says so, with the overlap of these" grep -qE "timeline: steps 3:4 are in $scratch/some.json; loading .* of loading hidden" "$scratch/log"
check "train --json has the overlap of the run" look 'o = a["overlap"]
assert 0 <= o["hidden"] <= 1 and o["loading_ms"] > 0 and 0 < o["computing_ms"] <= o["step_ms"], o' "$scratch/some.out"
"$program" train "$small" "${quick[@]}" --ranks 1 --out "$scratch/full" --timeline /dev/full 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
check "a disk that is full of it costs no run: a warning" grep -q "warning: .*/dev/full" "$scratch/log"
refused 2 "--steps 4:3: is no FIRST:LAST. Hint: --steps 200:220" train "$small" --out "$scratch/never" --timeline "$scratch/t.json" --steps 4:3
refused 2 "--steps requires --timeline" train "$small" --out "$scratch/never" --steps 3:4
live=(--set eval.splits=[] --set eval.every_epochs=0 --set train.max_steps=60 --ranks 2)
"$program" train "$small" "${live[@]}" --out "$scratch/live" >"$scratch/live.log" 2>&1 & job=$!
await_step "$scratch/live" 2 "$scratch/live.log"
touch "$scratch/live/TIMELINE"
wait $job || { cat "$scratch/live.log"; exit 1; }
check "a touched TIMELINE has 20 steps of both ranks recorded" python3 tests/support/order_checks.py window "$scratch/live/timeline.json" 20
check "and is gone, with one line about it" eval '[ ! -e "$scratch/live/TIMELINE" ] && [ "$(grep -c "timeline: steps [0-9]*:[0-9]* are in $scratch/live/timeline.json; loading" "$scratch/live.log")" = 1 ]'
"$program" train "$small" "${live[@]}" --out "$scratch/alone" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
check "nobody's looking changed the weights" cmp "$(weights "$scratch/live")" "$(weights "$scratch/alone")"
check "status tells a finished run" look '(run,) = a
assert run["state"] == "finished" and run["step"] == run["total_steps"] == 6 and run["ranks"] == 2, run' <("$program" status "$scratch/self" --json)
"$program" train "$small" "${quick[@]}" --ranks 2 --set data.images=[/nowhere] --out "$scratch/gone" 2>"$scratch/log"
check "after a failure of the ranks the last line is the program's own" bash -c "[ $? = 8 ] && tail -n 1 '$scratch/log' | grep -qE '^(rank 1: )?error: .images. /nowhere'"
check "no banner of mpirun stands before it" bash -c "! grep -qi 'mpi_abort\|mpirun detected\|mpirun has exited\|job terminated' '$scratch/log'"
"$program" doctor --ranks 2 --folder "$scratch" >"$scratch/doctor.txt" 2>"$scratch/log" || true
cat "$scratch/doctor.txt"
check "doctor finds nothing broken here" bash -c "! grep -q '^FAIL' '$scratch/doctor.txt'"
check "each rank has cores of its own" grep -qE '^(PASS|WARN)  cores +2 ranks with 2 threads on' "$scratch/doctor.txt"
if [ "$(nproc)" -gt 4 ]; then echo "skipped: more ranks than cores, of which there are many"; else
  "$program" doctor --ranks $(($(nproc) + 1)) --folder "$scratch" >"$scratch/crowded.txt" 2>"$scratch/log" || true
  check "ranks that share cores are warned of" grep -qE "^WARN  cores +$(($(nproc) + 1)) ranks with .*: ranks 0, 1.* run on the same ones" "$scratch/crowded.txt"
fi

# Open MPI says nothing of it under a quiet mpirun.
cramped() { mount -t tmpfs -o size=1m tmpfs /dev/shm && "$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/cramped" 2>"$scratch/log"; }
if ! unshare -m true 2>/dev/null; then echo "skipped: a small /dev/shm needs a mount namespace (root)"; else
  export -f cramped; rc=0; program=$program small=$small scratch=$scratch unshare -m bash -c "quick=(${quick[*]}); cramped" || rc=$?
  check "a /dev/shm that is too small is named with what is needed (exit $rc)" eval '[ $rc = 5 ] && tail -n 1 "$scratch/log" |
    grep -q "no rank could say why; .*; /dev/shm has 1.0 MiB free, and MPI and NCCL may take 122.1 MiB for 2 ranks. Hint: a container.s --shm-size=128m"'
fi

wait $stuck; rc=$?
check "a launcher that starts no rank ends in time (exit $rc)" eval '[ $rc = 7 ] && grep -q "mpirun did not start the ranks within 30 s on this host. Hint: mpirun.s own lines above; are .ulimit -n" "$scratch/never.log"'
finish
