#!/usr/bin/env bash
# find-lr: the same curve on one rank and on two, a rate, a picture; and what it refuses.
source tests/lib.sh
range=(--from 1e-6 --to 1 --steps 24 --set train.precision=fp64 --set model.sync_batchnorm=true)
curve() { "$program" find-lr "$small" "${range[@]}" --ranks "$1" --json --svg "$scratch/$1.svg" >"$scratch/$1.json" 2>"$scratch/log"; }

check "on one rank" curve 1
check "on two" curve 2
# Beyond the lowest point the rounding of sums grows from step to step.
check "the same curve, and a rate within it" python3 -c '
import json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:])
assert len(a["curve"]) == len(b["curve"]) >= 20 and a["batch"] == b["batch"], (a, b)
assert all(abs(p["loss"] - q["loss"]) < 1e-9 * p["loss"] and p["lr"] == q["lr"] for p, q in zip(a["curve"], b["curve"]) if p["lr"] < 1e-2), (a, b)
assert a["suggested"] is None or 1e-6 < a["suggested"] <= a["lowest"], a' "$scratch"/{1,2}.json
check "a picture of it" grep -q "<svg.*Loss at rising learning rates" "$scratch/2.svg"
check "in words" bash -c '"$@" 2>/dev/null | tail -n 1 | grep -Eq "^(a rate to begin with: train.lr = [0-9.e-]+, half-way|the loss falls by no more)"' - \
  "$program" find-lr "$small" "${range[@]}"
nothing=(--from 1e-30 --to 1e-29 --steps 20)
check "a rate that moves nothing is not suggested" bash -c '"$@" 2>/dev/null | tail -n 1 | grep -q "no rate is suggested"' - \
  "$program" find-lr "$small" "${nothing[@]}"
refused 2 "--from 1 is not below --to 1" find-lr "$small" --from 1 --to 1
echo mine >"$scratch/mine.svg"
refused 2 "mine.svg" find-lr "$small" --svg "$scratch/mine.svg"
check "another's file stays" grep -qx mine "$scratch/mine.svg"
finish
