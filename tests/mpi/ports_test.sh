#!/usr/bin/env bash
# Two ranks on one host under each MPI that is here: no rank listens on a TCP port, whoever started it, and mpirun's are reached from
# this host alone, also where it was started by hand. A stranger who connects to each of those and sends a byte does not halt training.
source tests/lib.sh
place_of() { cat "$source_folder/third_party/.$1" 2>/dev/null; }  # as scripts/setup wrote it down
command -v ss >/dev/null || { echo "skipped: no ss (iproute2)"; exit 77; }
none() { local found; found=$(python3 tests/support/run_ports.py "$1" "$2") || return; [ -z "$found" ] || { echo "$found"; return 1; }; }
last_step() { tail -n 1 "$1/metrics.jsonl" | grep -o '"step":[0-9]*' | head -n 1 | cut -d: -f2; }

path=$PATH checked=0
quick=(--set train.max_steps=1000000 --set eval.splits=[] --set eval.every_epochs=0 --set launch.timeout_s=60)
for mpi in "$(dirname "$(command -v mpirun || echo /none/mpirun)")" "$(place_of openmpi5)/bin" "$(place_of mpich)/bin"; do
  [ -x "$mpi/mpirun" ] || continue
  export PATH=$mpi:$path
  name=$(mpirun --version | head -n 1); name=${name%%:*}
  as_root=("${root[@]}"); [[ $name == *"Open MPI"* ]] || as_root=()
  checked=$((checked + 1)) run=$scratch/own-$checked
  "$program" train "$small" "${quick[@]}" --ranks 2 --out "$run" >"$run.log" 2>&1 & job=$!
  await_step "$run" 2 "$run.log"
  check "$name: its ranks open no port" none ranks "$run"
  await "$name: mpirun's ports are reached from this host alone" none open "$run"
  mapfile -t ports < <(python3 tests/support/run_ports.py list "$run" | sed -E 's/^[^ ]*:([0-9]+) .*/localhost:\1/')
  python3 tests/support/stranger.py "${ports[@]}" >"$run.stranger" & stranger=$!
  await "a stranger sends to each of them" test -s "$run.stranger"
  step=$(last_step "$run")
  await_step "$run" $((step + 20)) "$run.log"
  check "$name: a byte to each of its ${#ports[@]} ports ($(cut -d' ' -f1 "$run.stranger") took it) does not halt training" kill -0 $job
  kill $stranger
  kill -USR1 $job; wait $job; rc=$?
  check "$name: and the run still ends as it is told (exit $rc)" [ $rc = 75 ]

  run=$scratch/plain-$checked
  mpirun "${as_root[@]}" -np 2 "$program" train "$small" "${quick[@]}" --out "$run" >"$run.log" 2>&1 & job=$!
  await_step "$run" 2 "$run.log"
  check "$name: nor do ranks of a plain mpirun" none ranks "$run"
  # Where a rank may trace what started it.
  [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" != 0 ] || check "$name: whose ports are reached from this host alone" none open "$run"
  touch "$run/STOP"; wait $job; rc=$?
  check "$name: which ends (exit $rc)" [ $rc = 75 ]
done
[ "$checked" -gt 0 ] || { echo "skipped: no mpirun"; exit 77; }

# Layers that were chosen by hand are kept.
export PATH=$path
if mpirun --version | grep -q "Open MPI"; then
  run=$scratch/hand
  OMPI_MCA_btl=tcp,self "$program" train "$small" "${quick[@]}" --ranks 2 --out "$run" >"$run.log" 2>&1 & job=$!
  await "OMPI_MCA_btl=tcp,self is kept: ranks listen" eval '! none ranks "$run"'
  await_step "$run" 2 "$run.log"
  touch "$run/STOP"; wait $job; rc=$?
  check "and train (exit $rc)" [ $rc = 75 ]
fi
finish
