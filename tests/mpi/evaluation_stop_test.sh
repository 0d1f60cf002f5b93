#!/usr/bin/env bash
# A stop inside an evaluation is obeyed at once and loses nothing: the checkpoint is there, and the resume scores the
# same weights first, so that weights, metrics and best equal those of an undisturbed run.
source tests/lib.sh
# Two evaluations of about 60 single images, each after 12 to 14 steps. In a run to be stopped they come slowly after the
# evaluation's checkpoint, so that it lasts longer than a signal takes.
settings=(--set data.val_fraction=0.5 --set train.max_steps=18 --set train.epochs=2 --set eval.batch=1 --set eval.splits=[test])
await_logs=("$scratch/log")
facts() {  # what must not depend on how often a run was stopped
  look '
for line in a:
    if line["event"] in ("epoch", "val", "checkpoint", "final", "end"): print(line)
    if line["event"] == "train": print(line["step"], line["images"], line["loss"])
print({k: v for k, v in b.items() if k not in ("config", "files", "state_sha256")})  # of other folders
' "$1"/{metrics.jsonl,checkpoints/last/state.json} && readlink "$1"/checkpoints/{best,last}
}
start() { exec "${slow[@]}" "$program" train "$small" "${settings[@]}" --ranks "$ranks" "$@" 2>>"$scratch/log"; }
for ranks in 1 2; do
  whole=$scratch/whole-$ranks run=$scratch/stopped-$ranks
  slow=()
  (start --out "$whole") || { cat "$scratch/log"; exit 1; }
  first=$(basename "$(find "$whole/checkpoints" -name 'step-*' | sort | head -n 1)") last=$(readlink "$whole/checkpoints/last")
  # Of the first evaluation, by signal; again inside the repeated one, by file; then of the final one.
  slow_images 300 "$run/checkpoints/$first"
  start --out "$run" & job=$!
  await "the first checkpoint is written" has_line "$run" '"event":"checkpoint"'
  kill -USR1 $job; wait $job; rc=$?
  check "$ranks ranks: USR1 inside an evaluation ends with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks ranks: before the evaluation was done" [ "$(grep -c '"event":"val"' "$run/metrics.jsonl")" = 0 ]
  check "$ranks ranks: with a checkpoint that knows it" grep -q '"evaluation_due": true' "$run/checkpoints/last/state.json"
  steps=$(grep -c '"event":"train"' "$run/metrics.jsonl")
  start --out "$run" --resume auto & job=$!
  await "the run goes on" has_line "$run" '"event":"restart"'
  touch "$run/STOP"; wait $job; rc=$?
  check "$ranks ranks: the STOP file inside the repeated one ends with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks ranks: no step was trained" [ "$(grep -c '"event":"train"' "$run/metrics.jsonl")" = "$steps" ]
  slow_images 300 "$run/checkpoints/$last"
  start --out "$run" --resume auto & job=$!
  await "the last step is trained" has_line "$run" '"event":"ranks"'
  kill -TERM $job; wait $job; rc=$?
  check "$ranks ranks: TERM inside the final evaluation ends with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks ranks: before it was done" [ "$(grep -c '"event":"end"' "$run/metrics.jsonl")" = 0 ]
  slow=()
  (start --out "$run" --resume auto) || cat "$scratch/log"
  check "$ranks ranks: weights equal an undisturbed run's" cmp "$(weights "$whole")" "$(weights "$run")"
  check "$ranks ranks: and those of the best step" cmp "$whole/checkpoints/best/model.safetensors" "$run/checkpoints/best/model.safetensors"
  check "$ranks ranks: metrics, state and links too" eval 'facts "$whole" >"$scratch/a" && facts "$run" >"$scratch/b" && diff "$scratch"/{a,b}'
done
finish
