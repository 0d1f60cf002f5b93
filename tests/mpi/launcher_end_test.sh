#!/usr/bin/env bash
# mpirun that does not end with its ranks, stopped or held up by a stranger's byte, keeps no finished run from its end: the parent
# names it, kills it and ends with the run's code, also of a run that fails or is asked to stop. A second TERM ends all at once,
# too. Nor does storage that hangs make the parent deaf. All runs are beside each other.
source tests/lib.sh
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set launch.timeout_s=20)  # three starts beside each other
declare -A job
begin() {  # begin NAME STEPS ARGUMENTS...: a run of two ranks whose images come slowly while its file is there
  touch "$scratch/$1.slowly"
  slow_images 200 "$scratch/$1.slowly"
  "${slow[@]}" "$program" train "$small" "${quick[@]}" --set train.max_steps="$2" --ranks 2 --out "$scratch/$1" "${@:3}" >"$scratch/$1.log" 2>&1 & job[$1]=$!
}
launcher_of() { pgrep -P "${job[$1]}" -x 'mpirun|mpiexec.*|prterun|orterun'; }
ends() {  # ends NAME CODE WHY: although mpirun hung for the reason WHY
  wait "${job[$1]}"; local rc=$?
  check "$1: the run ends with $2 (exit $rc)" [ $rc = "$2" ]
  check "$1: mpirun is named" grep -qE "mpirun \(process ${launcher[$1]}\) has not ended [0-9]+ s after its ranks: it $3" "$scratch/$1.log"
  check "$1: no process is left" no_process "$scratch/$1"
  [ $rc = "$2" ] || tail -n 10 "$scratch/$1.log"
}

declare -A launcher
runs=(stopped released canceled asked failed)
! command -v ss >/dev/null || runs+=(held)
for name in "${runs[@]}"; do
  steps=14 more=()
  case $name in
    canceled | asked) steps=1000000 ;;
    failed) more=(--set train.optimizer=sgd --set train.lr=1000 --set train.not_finite=fail) ;;
  esac
  begin "$name" "$steps" "${more[@]}"
done
SLOW_NAME=postmortem.json SLOW_MS=1000000 LD_PRELOAD="$scratch/slow.so" "$program" train "$small" "${quick[@]}" --set train.max_steps=1000000 \
  --ranks 2 --out "$scratch/deaf" >"$scratch/deaf.log" 2>&1 & job[deaf]=$!
for name in "${runs[@]}"; do
  await_step "$scratch/$name" 1 "$scratch/$name.log"
  launcher[$name]=$(launcher_of "$name")
done
kill -STOP "${launcher[stopped]}" "${launcher[released]}" "${launcher[canceled]}" "${launcher[asked]}" "${launcher[failed]}"
await_step "$scratch/deaf" 1 "$scratch/deaf.log"
echo '{}' >"$scratch/deaf/postmortem.json"
kill -TERM "${job[asked]}"
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

released_left() { [ -z "$(rank_processes "$scratch/released")" ]; }
await "the ranks of released have left" released_left
kill -CONT "${launcher[released]}"
wait "${job[released]}"; rc=$?
check "released: mpirun that goes on after they left ends the run with 0 (exit $rc)" [ $rc = 0 ]
check "released: and a rank says what it waited for" grep -q "did its work, and MPI did not let it end within 20 s" "$scratch/released.log"
ends stopped 0 "is stopped"
check "stopped: mpirun is named before the ranks have ended, too" \
  grep -qE "mpirun has been stopped for [0-9]+ s .*kill -CONT ${launcher[stopped]}" "$scratch/stopped.log"
# A rank that fails ends a stopped mpirun by KILL. Why, a training writes down.
slow_images 1000000
"${slow[@]}" "$program" evaluate "$scratch/stopped" --split test --ranks 2 --set launch.timeout_s=10 >"$scratch/evaluate.log" 2>&1 & job[evaluate]=$!
ranks_of_evaluate() { [ "$(pgrep -cf "evaluate $scratch/stopped .*--ranks 2")" -ge 4 ]; }
await "the ranks of an evaluation" ranks_of_evaluate
kill -STOP "$(launcher_of evaluate)"
cp -r "$scratch/stopped" "$scratch/scored"
"${slow[@]}" "$program" evaluate "$scratch/scored" --split test --ranks 2 >"$scratch/killed.log" 2>&1 & job[killed]=$!
waits_for_images() { [ "$(rank_of_killed 0 | wc -l) $(rank_of_killed 1 | wc -l)" = "1 1" ]; }
rank_of_killed() {
  for process in $(pgrep -f "evaluate $scratch/scored "); do
    ! grep -qzx "OMPI_COMM_WORLD_RANK=$1" "/proc/$process/environ" 2>/dev/null || echo "$process"
  done
}
await "its ranks" waits_for_images
sleep 5  # beyond MPI's start
kill -STOP "$(launcher_of killed)"
sleep 2
kill -9 "$(rank_of_killed 1)"
ends asked 75 "is stopped"
ends failed 6 "is stopped"
wait "${job[evaluate]}"; rc=$?
check "an evaluation whose rank fails below a stopped mpirun ends with 7 (exit $rc)" [ $rc = 7 ]
check "and says why so little is said" grep -q "mpirun was killed while it was stopped" "$scratch/evaluate.log"
wait "${job[killed]}"; rc=$?
check "one of whose ranks is killed there ends with 5 (exit $rc)" [ $rc = 5 ]
check "and names the rank" grep -qE "mpirun was killed while it was stopped .*: rank 1 \(process [0-9]+\) ended with signal 9" "$scratch/killed.log"
wait "${job[deaf]}"; rc=$?
check "deaf: a parent whose storage hangs ends with 7 (exit $rc)" [ $rc = 7 ]
check "deaf: and says so" grep -qE "storage. looking into the run folder $scratch/deaf took more than 20 s" "$scratch/deaf.log"
check "deaf: no process is left" no_process "$scratch/deaf"
if [ -n "${launcher[held]-}" ]; then
  ends held 0 "hangs, for example because a stranger keeps a connection"
  kill $stranger
fi
finish
