#!/usr/bin/env bash
# A network that diverged ends its run with 6 on every rank, in training as in evaluation, and never hangs.
source tests/lib.sh
diverging=(--set train.lr=1000 --set train.optimizer=sgd --set data.val_fraction=0.3 --set eval.splits=[])
# Evaluated while gradients are still finite; trained until they are not.
for how in "1 6" "2 6" "2 40"; do
  read -r ranks steps <<<"$how"
  run=$scratch/run-$ranks-$steps
  timeout 300 "$program" train "$small" "${diverging[@]}" --ranks "$ranks" --set train.max_steps="$steps" --out "$run" --timeline "$run.json" 2>"$scratch/log"; rc=$?
  check "$ranks ranks, $steps steps: exit 6 (exit $rc)" [ $rc = 6 ]
  check "each rank leaves what it recorded" look 'assert all(any(e.get("ph") == "X" for e in t["traceEvents"]) for t in (a, globals().get("b", a)))' "$run"/timeline-rank-*.json
  "$program" status "$run" >"$scratch/status"
  check "status says that it failed" grep -q "(failed)" "$scratch/status"
  check "and of what" grep -q "not finite.*(exit 6)" "$scratch/status"
  [ "$steps" != 6 ] ||
    check "the evaluation names split and count" grep -q "the val split: [0-9]* of 504 logits are not finite" "$run/metrics.jsonl"
done
finish
