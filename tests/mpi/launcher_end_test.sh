#!/usr/bin/env bash
# mpirun that does not end with its ranks, stopped or held up by a stranger's byte, keeps no finished run from its end: the parent
# names it, kills it and ends with the run's code. A second TERM ends all at once, too. All runs are beside each other.
source tests/lib.sh
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set launch.timeout_s=20)  # three starts beside each other
declare -A job
begin() {  # begin NAME STEPS: a run of two ranks whose images come slowly while its file is there
  touch "$scratch/$1.slowly"
  slow_images 200 "$scratch/$1.slowly"
  "${slow[@]}" "$program" train "$small" "${quick[@]}" --set train.max_steps="$2" --ranks 2 --out "$scratch/$1" >"$scratch/$1.log" 2>&1 & job[$1]=$!
}
launcher_of() { pgrep -P "${job[$1]}" -x 'mpirun|mpiexec.*|prterun|orterun'; }
finished() {  # finished NAME WHY: with 0, although mpirun hung for the reason WHY
  wait "${job[$1]}"; local rc=$?
  check "$1: a finished run ends with 0 (exit $rc)" [ $rc = 0 ]
  check "$1: mpirun is named" grep -qE "mpirun \(process ${launcher[$1]}\) has not ended [0-9]+ s after its ranks: it $2" "$scratch/$1.log"
  check "$1: no process is left" no_process "$scratch/$1"
  [ $rc = 0 ] || tail -n 10 "$scratch/$1.log"
}

declare -A launcher
runs=(stopped canceled)
! command -v ss >/dev/null || runs+=(held)
for name in "${runs[@]}"; do
  steps=14; [ "$name" != canceled ] || steps=1000000
  begin "$name" "$steps"
done
for name in "${runs[@]}"; do
  await_step "$scratch/$name" 2 "$scratch/$name.log"
  launcher[$name]=$(launcher_of "$name")
done
kill -STOP "${launcher[stopped]}" "${launcher[canceled]}"
if [ -n "${launcher[held]-}" ]; then
  mapfile -t ports < <(python3 tests/support/run_ports.py list "$scratch/held" | sed -E 's/^[^ ]*:([0-9]+) .*/localhost:\1/')
  python3 tests/support/stranger.py "${ports[@]}" >"$scratch/stranger" & stranger=$!
  await "a stranger holds mpirun's ports" test -s "$scratch/stranger"
fi
rm "$scratch"/*.slowly

kill -TERM "${job[canceled]}"
await "the first TERM is taken" grep -q "once more ends them at once" "$scratch/canceled.log"
kill -TERM "${job[canceled]}"
wait "${job[canceled]}"; rc=$?
check "canceled: TERM twice ends a run whose mpirun is stopped (exit $rc)" [ $rc = 75 ]
check "canceled: no process is left" no_process "$scratch/canceled"

finished stopped "is stopped"
if [ -n "${launcher[held]-}" ]; then
  finished held "hangs, for example because a stranger keeps a connection"
  kill $stranger
fi
finish
