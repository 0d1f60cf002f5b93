#!/usr/bin/env bash
# A rank slowed 1.5 times is named within 50 steps with its rank; undisturbed ranks raise no alarm in 5,000 steps.
# Wants a quiet machine: what else runs on its cores is, rightly, a straggler.
[ -n "${CHEXNET_LONG:-}" ] || { echo "skipped: it takes a quiet machine (CHEXNET_LONG=1)"; exit 77; }
source tests/lib.sh
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set train.epochs=100000 --ranks 2)
"$program" train "$small" "${quick[@]}" --set train.max_steps=5000 --out "$scratch/even" >"$scratch/log" 2>&1 || { tail "$scratch/log"; exit 1; }
check "no alarm in 5000 steps ($(grep -c '"event":"straggler"' "$scratch/even/metrics.jsonl") seen)" bash -c "! grep '\"event\":\"straggler\"' '$scratch/even/metrics.jsonl'"
for rank in 0 1; do
  run=$scratch/slowed-$rank
  "$program" train "$small" "${quick[@]}" --set train.max_steps=400 --out "$run" >"$scratch/log" 2>&1 & job=$!
  python3 - "$run" "$rank" <<'PY'
# From step 100 on the rank runs two thirds of the time, in slices much shorter than a step.
import os, signal, sys, time
run, rank = sys.argv[1:]
def last_step():
    try:
        import json
        return max((json.loads(l)["step"] for l in open(run + "/metrics.jsonl") if '"train"' in l), default=0)
    except (OSError, ValueError):
        return 0
while last_step() < 100: time.sleep(0.02)
for p in filter(str.isdigit, os.listdir("/proc")):
    try:
        env, cmd = open(f"/proc/{p}/environ").read(), open(f"/proc/{p}/cmdline").read()
    except OSError:
        continue
    if f"OMPI_COMM_WORLD_RANK={rank}\0" in env and f"--out\0{run}\0" in cmd + "\0": victim = int(p)
open(run + "/slowed-at", "w").write(str(last_step()))
try:
    while True:
        time.sleep(0.008); os.kill(victim, signal.SIGSTOP)
        time.sleep(0.004); os.kill(victim, signal.SIGCONT)
except ProcessLookupError:
    pass
PY
  wait $job
  check "rank $rank slowed 1.5 x is named within 50 steps" python3 - "$run" "$rank" <<'PY'
import json, sys
alarms = [json.loads(l) for l in open(sys.argv[1] + "/metrics.jsonl") if '"straggler"' in l]
at = int(open(sys.argv[1] + "/slowed-at").read())
print("  slowed at", at, [(a["step"], a["rank"], round(a["ratio"], 2), a["cause"]) for a in alarms])
assert alarms and alarms[0]["rank"] == int(sys.argv[2]) and alarms[0]["step"] - at <= 50
PY
done
finish
