#!/usr/bin/env bash
# However a run ends, its resume reaches the weights of the uninterrupted run, bit for bit, and leaves no process behind.
source tests/lib.sh
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5)
start() { mpi 2 train "$small" "${quick[@]}" "$@" 2>>"$scratch/log"; }
wait_for_step() { await_step "$1" "$2" "$scratch/log"; }
same() { ends_alike "$1" "$scratch/whole" "$2"; }

start --out "$scratch/whole" || { cat "$scratch/log"; exit 1; }

# kill -9 of a rank in the middle of an epoch
start --out "$scratch/killed" & job=$!
wait_for_step "$scratch/killed" 8
pkill -9 -f -n -- "chexnet-train train .*--out $scratch/killed"
wait $job; rc=$?
check "a killed rank ends the job with an error (exit $rc)" [ $rc -ne 0 ]
check "no process is left" no_process "$scratch/killed"
start --out "$scratch/killed" --resume auto || cat "$scratch/log"
same "kill -9 and resume" "$scratch/killed"

# kill -9 of mpirun itself
start --out "$scratch/orphans" & job=$!
wait_for_step "$scratch/orphans" 7
pkill -9 -f -- "mpirun .*--out $scratch/orphans"
wait $job
check "no orphan after kill -9 of mpirun" no_process "$scratch/orphans"
start --out "$scratch/orphans" --resume auto || cat "$scratch/log"
same "kill -9 of mpirun and resume" "$scratch/orphans"

# A checkpoint of another run, whose config its state.json holds
start --out "$scratch/foreign" --set run.seed=2 --set train.max_steps=5 || cat "$scratch/log"
cp -r "$(realpath "$scratch/whole/checkpoints/last")" "$scratch/foreign/checkpoints/"
refused 2 "the config differs from the checkpoint's" train "$small" "${quick[@]}" --out "$scratch/foreign" --resume auto --set run.seed=2

# SIGUSR1 to mpirun
start --out "$scratch/usr1" --set run.log_every=5 & job=$!
wait_for_step "$scratch/usr1" 5
pkill -USR1 -f -- "mpirun .*--out $scratch/usr1"
wait $job; rc=$?
check "SIGUSR1 ends with 75 (exit $rc)" [ $rc = 75 ]
start --out "$scratch/usr1" --set run.log_every=5 --resume yes || cat "$scratch/log"
same "SIGUSR1 and resume" "$scratch/usr1"
start --out "$scratch/fives" --set run.log_every=5 || cat "$scratch/log"
check "its train lines are those of the run without a stop" python3 - "$scratch"/{fives,usr1}/metrics.jsonl <<'EOF'
import json, sys
whole, usr1 = ([[e[key] for key in ("step", "steps", "loss", "gradient_norm")] for e in map(json.loads, open(name)) if e["event"] == "train"]
               for name in sys.argv[1:])
assert sum(line[1] for line in whole) == whole[-1][0] == 24 and whole == usr1, (whole, usr1)
EOF

# TERM to the self-launching parent
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/term" 2>>"$scratch/log" & job=$!
wait_for_step "$scratch/term" 8
kill -TERM $job
wait $job; rc=$?
check "TERM to the self-launch ends with 75 (exit $rc)" [ $rc = 75 ]
check "no process is left" no_process "$scratch/term"
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/term" --resume auto 2>>"$scratch/log" || cat "$scratch/log"
same "TERM and resume" "$scratch/term"

# TERM to all processes of a job, as scancel sends it
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/canceled" 2>"$scratch/log-canceled" & job=$!
wait_for_step "$scratch/canceled" 8
# shellcheck disable=SC2046 # processes
kill -TERM $(pgrep -f -- "--out $scratch/canceled")
wait $job; rc=$?
check "a canceled job ends with 75 (exit $rc)" [ $rc = 75 ]
check "it says what happened, the checkpoint and how to go on" \
  eval 'tail -n 1 "$scratch/log-canceled" | grep -q "^warning: .*the job was canceled.*last good checkpoint: step-.*; resume with: .*--out $scratch/canceled --resume auto"'
check "and is no failure" eval '[ ! -e "$scratch/canceled/postmortem.json" ]'
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/canceled" --resume auto 2>>"$scratch/log" || cat "$scratch/log"
same "a canceled job and resume" "$scratch/canceled"

# TERM twice, as some batch systems send it
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/twice" 2>"$scratch/log-twice" & job=$!
wait_for_step "$scratch/twice" 8
kill -TERM $job; sleep 0.1; kill -TERM $job
wait $job; rc=$?
check "TERM twice ends with 75 (exit $rc)" [ $rc = 75 ]
check "and is no failure" bash -c "! grep -q 'no rank could say why' '$scratch/log-twice'"
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/twice" --resume auto 2>>"$scratch/log" || cat "$scratch/log"
same "TERM twice and resume" "$scratch/twice"

# A terminal that closes; all the program says from there on is lost
cat >"$scratch/terminal.py" <<'PY'
"""terminal.py STEPS_FILE COMMAND...: runs it in a terminal, closes that at step 5, exits as the command does."""
import os, pty, sys, time
process, terminal = pty.fork()
if process == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.set_blocking(terminal, False)
while not (os.path.exists(sys.argv[1]) and '"step":5' in open(sys.argv[1]).read()):
    try:
        os.read(terminal, 65536)
    except BlockingIOError:
        time.sleep(0.02)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
PY
for ranks in 1 2; do
  out=$scratch/terminal$ranks rc=0
  python3 "$scratch/terminal.py" "$out/metrics.jsonl" "$program" train "$small" "${quick[@]}" --ranks $ranks --out "$out" 2>>"$scratch/log" || rc=$?
  check "a terminal that closes ends $ranks rank(s) with 75 (exit $rc)" [ $rc = 75 ]
  check "no process is left" no_process "$out"
done
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/terminal2" --resume auto 2>>"$scratch/log" || cat "$scratch/log"
same "the terminal's end and resume" "$scratch/terminal2"

# kill -9 of the self-launching parent
"$program" train "$small" "${quick[@]}" --ranks 2 --out "$scratch/parent" 2>>"$scratch/log" & job=$!
wait_for_step "$scratch/parent" 3
kill -9 $job; wait $job 2>/dev/null
check "no orphan after kill -9 of the parent" no_process "$scratch/parent"

# A rank that stops answering: the others name it after the deadline, nothing hangs, nothing is left
start --set launch.timeout_s=3 --set train.max_steps=100000 --out "$scratch/hang" & job=$!
wait_for_step "$scratch/hang" 6
pkill -STOP -f -n -- "chexnet-train train .*--out $scratch/hang"
wait $job; rc=$?
check "a stopped rank ends the job with 7 (exit $rc)" [ $rc = 7 ]
check "the message names the rank that stopped" grep -Eq "Rank [01] on .* stopped answering 3" "$scratch/log"
check "no process is left" no_process "$scratch/hang"

# STOP file, then 1 -> 2 -> 1 ranks: the stream goes on where it was
mpi 1 train "$small" "${quick[@]}" --set checkpoint.every_steps=0 --out "$scratch/ranks" 2>>"$scratch/log" & job=$!
wait_for_step "$scratch/ranks" 4; touch "$scratch/ranks/STOP"; wait $job; rc=$?
check "the STOP file ends with 75 (exit $rc)" [ $rc = 75 ]
mpi 2 train "$small" "${quick[@]}" --set train.max_steps=15 --resume yes --out "$scratch/ranks" 2>"$scratch/two" || cat "$scratch/two"
check "another number of ranks is said to lose bitwise equality" grep -q "number of ranks changed from 1 to 2" "$scratch/two"
mpi 1 train "$small" "${quick[@]}" --resume yes --out "$scratch/ranks" 2>>"$scratch/log" || cat "$scratch/log"
check "each step was trained exactly once, in order" python3 - "$scratch/ranks" "$scratch/whole" <<'PY'
import json, sys
a, b = ([(l["step"], l["images"]) for l in map(json.loads, open(p + "/metrics.jsonl")) if l["event"] == "train"] for p in sys.argv[1:3])
assert a == b == [(s, 8 * s) for s in range(1, 25)], a
PY
finish
