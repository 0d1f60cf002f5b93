#!/usr/bin/env bash
# However a run ends, its resume reaches the weights of the uninterrupted run, bit for bit, and leaves no process behind. We end
# two runs in one way after the other, each time in the middle of an epoch.
source tests/lib.sh
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=4)
log=$scratch/log
begins() { exec "${slow[@]}" "$@" "${quick[@]}" --out "$run" --resume auto 2>"$log"; }
# goes_on STEP COMMAND...: images of this start come slowly after this step, so that it still runs when it gets the signal
goes_on() {
  slow_images 500 "$run/checkpoints/step-$(printf %08d "$1")"
  begins "${@:2}" & job=$!
  await_step "$run" "$1" "$log"
  slow=()
}
left() {  # left CODE TEXT: how the job ended
  local rc=0
  wait $job || rc=$?
  check "$2 ($1, exit $rc)" [ "$rc" = "$1" ]
  check "no process is left" no_process "$run"
  [ "$rc" = "$1" ] || tail -n 20 "$log"
}
whole() { (begins "$@") || cat "$log"; }
by_mpirun=(mpirun --map-by socket --oversubscribe "${root[@]}" -np 2 "$program" train "$small" --set run.log_every=4)
by_itself=("$program" train "$small" --ranks 2)

# What mpirun started. The run without a stop writes a line each fourth step, too.
run=$scratch/whole
whole "${by_mpirun[@]}"
run=$scratch/stopped
goes_on 4 "${by_mpirun[@]}"
kill -9 "$(rank_processes "$run" 1)"
left 137 "kill -9 of a rank"

goes_on 8 "${by_mpirun[@]}"
kill -9 $job
left 137 "kill -9 of mpirun"

goes_on 12 "${by_mpirun[@]}"
kill -USR1 $job
left 75 "SIGUSR1 to mpirun"
whole "${by_mpirun[@]}"
ends_alike "kill -9 of a rank, of mpirun, USR1 and resumes" "$scratch/whole" "$run"
check "its train lines are those of the run without a stop" look '
whole, stopped = ([[e[key] for key in ("step", "steps", "loss", "gradient_norm")] for e in of("train", lines)] for lines in (a, b))
assert sum(line[1] for line in whole) == whole[-1][0] == 24 and whole == stopped, (whole, stopped)' "$scratch"/{whole,stopped}/metrics.jsonl

# A checkpoint of another run, whose config its state.json holds
cp -r "$scratch/whole" "$scratch/foreign"
sed -i 's/^\( *seed:\).*/\1 2/' "$scratch/foreign/config.yaml"
refused 2 "the config differs from the checkpoint's" train "$small" "${quick[@]}" --out "$scratch/foreign" --resume auto --set run.log_every=4 --set run.seed=2

# What the program started itself: TERM to the parent
run=$scratch/itself
goes_on 4 "${by_itself[@]}"
kill -TERM $job
left 75 "TERM to the self-launch"

# TERM to all processes of a job, as scancel sends it
goes_on 8 "${by_itself[@]}"
pkill -TERM -f -- "--out $run"
left 75 "a canceled job"
check "it says what happened, the checkpoint and how to go on" \
  eval 'tail -n 1 "$log" | grep -q "^warning: .*the job was canceled.*last good checkpoint: step-.*; resume with: .*--out $run --resume auto"'
check "and is no failure" [ ! -e "$run/postmortem.json" ]

# TERM twice, as some batch systems send it: again when the parent has taken the first one, which asks for a checkpoint
goes_on 12 "${by_itself[@]}"
kill -TERM $job
await "the parent asks its ranks to stop" grep -q "stop requested" "$log"
kill -TERM $job
left 75 "TERM twice"
check "and is no failure" bash -c "! grep -q 'no rank could say why' '$log'"

# A terminal that closes; all the program says from there on is lost
goes_on 16 python3 tests/support/terminal.py 16 "$run/metrics.jsonl" "${by_itself[@]}"
left 75 "a terminal that closes"
whole "${by_itself[@]}"
ends_alike "TERM, a canceled job, TERM twice, a terminal's end and resumes" "$scratch/whole" "$run"
run=$scratch/alone
goes_on 4 python3 tests/support/terminal.py 4 "$run/metrics.jsonl" "$program" train "$small"
left 75 "a terminal that closes, one rank"

# kill -9 of the self-launching parent
run=$scratch/parent
goes_on 4 "${by_itself[@]}"
kill -9 $job
left 137 "kill -9 of the parent"

# A rank that stops answering: the others name it after the deadline, nothing hangs, nothing is left
run=$scratch/hang
goes_on 4 "${by_itself[@]}" --set launch.timeout_s=20
kill -STOP "$(rank_processes "$run" 1)"
left 7 "a stopped rank"
check "the message names the rank that stopped" grep -q "Rank 1 on .* stopped answering 20" "$log"

# STOP file, then 1 -> 2 -> 1 ranks: the training order goes on where it was
run=$scratch/ranks
goes_on 4 "$program" train "$small"
touch "$run/STOP"
left 75 "the STOP file"
whole "${by_itself[@]}" --set train.max_steps=15
check "another number of ranks is said to lose bitwise equality" grep -q "changed: number of ranks from 1 to 2" "$log"
whole "$program" train "$small"
check "each step was trained exactly once, in order" look '
lines = [(e["step"], e["images"]) for e in of("train", a)]
assert lines == [(s, 8 * s) for s in range(1, 25)], lines' "$run/metrics.jsonl"

# Steps since the last train line have one at a stop, until the resume's first line holds them, too.
run=$scratch/rare
rarely=("$program" train "$small" --set run.log_every=100)
goes_on 4 "${rarely[@]}"
touch "$run/STOP"
left 75 "the STOP file between two train lines"
check "a stop writes a line of the steps since the last" look '
(line,), (stop,) = of("train", a), of("stop", a)
assert line["step"] == line["steps"] == stop["step"] >= 4 and line["images_per_s"] > 0, (line, stop)' "$run/metrics.jsonl"
check "and status has its rate" grep -q "^ *images/s, lately *[0-9.]* on 1 rank" <<<"$("$program" status "$run")"
whole "${rarely[@]}"
check "the resume writes these steps anew" look '
assert sum(e["steps"] for e in of("train", a)) == 24, of("train", a)' "$run/metrics.jsonl"
finish
