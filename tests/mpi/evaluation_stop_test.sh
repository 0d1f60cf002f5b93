#!/usr/bin/env bash
# A stop inside an evaluation is obeyed at once and loses nothing: the checkpoint is there, and the resume scores the
# same weights first, so that weights, metrics and best equal those of an undisturbed run.
source tests/lib.sh
# Two evaluations of about 60 single images, each after 12 to 14 steps, of a size that takes half a second.
slow=(--set data.resize=68 --set data.crop=64 --set data.val_fraction=0.5 --set train.max_steps=18 --set train.epochs=2 --set eval.batch=1 --set eval.splits=[test] --set train.engine=aten)
seen() { grep -q "$2" "$1/metrics.jsonl" 2>/dev/null; }
wait_for() {  # RUN TEXT: until metrics.jsonl has it
  for _ in $(seq 6000); do seen "$@" && return; sleep 0.01; done
  echo "FAILED: $1 never wrote $2"; tail -n 5 "$scratch/log"; exit 1
}
# The ranks stand still from the moment in which the line was seen until the signal has reached them (mpirun passes it
# on in its own time), so that a fast machine does not end the evaluation before.
signal_after() {  # signal_after TEXT SIGNAL RUN JOB
  wait_for "$3" "$1"
  local ranks; ranks=$(rank_processes "$3")
  kill -STOP ${ranks:-$4}; kill "-$2" "$4"; sleep 0.5; kill -CONT ${ranks:-$4}
}
facts() {  # what must not depend on how often a run was stopped
  python3 - "$1" <<'PY'
import json, os, sys
run = sys.argv[1]
for line in map(json.loads, open(run + "/metrics.jsonl")):
    if line["event"] in ("epoch", "val", "checkpoint", "final", "end"):
        print(json.dumps(line))
    if line["event"] == "train":
        print(line["step"], line["images"], line["loss"])
state = json.load(open(run + "/checkpoints/last/state.json"))
print({k: v for k, v in state.items() if k not in ("config", "files", "state_sha256")})  # of other folders
print(os.readlink(run + "/checkpoints/best"), os.readlink(run + "/checkpoints/last"))
PY
}
for ranks in 1 2; do
  whole=$scratch/whole-$ranks run=$scratch/stopped-$ranks
  start() { exec "$program" train "$small" "${slow[@]}" --ranks $ranks "$@" 2>>"$scratch/log"; }
  (start --out "$whole") || { cat "$scratch/log"; exit 1; }
  # Of the first evaluation, by signal; again inside the repeated one, by file; then of the final one.
  start --out "$run" & job=$!
  signal_after '"event":"checkpoint"' USR1 "$run" $job; wait $job; rc=$?
  check "$ranks ranks: USR1 inside an evaluation ends with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks ranks: before the evaluation was done" [ "$(grep -c '"event":"val"' "$run/metrics.jsonl")" = 0 ]
  check "$ranks ranks: with a checkpoint that knows it" grep -q '"evaluation_due": true' "$run/checkpoints/last/state.json"
  steps=$(grep -c '"event":"train"' "$run/metrics.jsonl")
  start --out "$run" --resume auto & job=$!
  wait_for "$run" '"event":"restart"'; touch "$run/STOP"; wait $job; rc=$?
  check "$ranks ranks: the STOP file inside the repeated one ends with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks ranks: no step was trained" [ "$(grep -c '"event":"train"' "$run/metrics.jsonl")" = "$steps" ]
  start --out "$run" --resume auto & job=$!
  signal_after '"event":"ranks"' TERM "$run" $job; wait $job; rc=$?
  check "$ranks ranks: TERM inside the final evaluation ends with 75 (exit $rc)" [ $rc = 75 ]
  check "$ranks ranks: before it was done" [ "$(grep -c '"event":"end"' "$run/metrics.jsonl")" = 0 ]
  (start --out "$run" --resume auto) || cat "$scratch/log"
  check "$ranks ranks: weights equal an undisturbed run's" cmp "$(weights "$whole")" "$(weights "$run")"
  check "$ranks ranks: and those of the best step" cmp "$whole/checkpoints/best/model.safetensors" "$run/checkpoints/best/model.safetensors"
  facts "$whole" >"$scratch/a"; facts "$run" >"$scratch/b"
  check "$ranks ranks: metrics, state and links too" diff "$scratch/a" "$scratch/b"
done
finish
