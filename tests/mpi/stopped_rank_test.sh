#!/usr/bin/env bash
# A rank that stops at a random step is named, the ranks start again by themselves, and the run ends with the
# weights of an undisturbed one. CHEXNET_STOPS times (default 1), and within CHEXNET_NAMED_WITHIN seconds
# of the stop (T = 5 s).
source tests/lib.sh
stops=${CHEXNET_STOPS:-1} T=5
quick=(--set eval.splits=[] --set eval.every_epochs=0 --set checkpoint.every_steps=5 --set launch.timeout_s=$T --set train.max_steps=30 --ranks 2)
"$program" train "$small" "${quick[@]}" --out "$scratch/whole" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
cat >"$scratch/stop.py" <<'PY'
# Waits for a step, stops a rank of the run, and tells when.
import os, signal, sys, time
run, step, rank = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def find():
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            env, cmd = open(f"/proc/{p}/environ").read(), open(f"/proc/{p}/cmdline").read()
        except OSError:
            continue
        if f"OMPI_COMM_WORLD_RANK={rank}\0" in env and f"--out\0{run}\0" in cmd + "\0":
            return int(p)
deadline = time.time() + 60
while time.time() < deadline:
    try:
        if f'"step":{step},' in open(run + "/metrics.jsonl").read(): break
    except OSError:
        pass
    time.sleep(0.01)
time.sleep(0.002 * (os.getpid() % 20))  # anywhere in a step
victim = find()
now = time.time()
os.kill(victim, signal.SIGSTOP)
print(now, victim)
PY
no_process() { ! pgrep -f -- "--out $1" >/dev/null; }
for i in $(seq "$stops"); do
  run=$scratch/run-$i step=$((RANDOM % 22 + 2)) rank=$((RANDOM % 2))
  "$program" train "$small" "${quick[@]}" --set launch.restarts=1 --out "$run" >"$run.log" 2>&1 & job=$!
  stopped=$(python3 "$scratch/stop.py" "$run" "$step" "$rank")
  wait $job; rc=$?
  after=$(python3 -c "import os;print(round(os.stat('$run/postmortem-1.json').st_mtime - float('${stopped% *}'), 1))")
  text="stop $i: rank $rank at step $step, named after $after s"
  check "$text" python3 - "$run/postmortem-1.json" "$rank" "${stopped#* }" "$after" "${CHEXNET_NAMED_WITHIN:-60}" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["cause"] == "stopped" and report["ranks"] == [int(sys.argv[2])], report["what"]
assert f"process {sys.argv[3]} is there" in report["what"], report["what"]
# On a quiet machine it is at most T + 1 s (docs/measurements.md).
assert 4.5 <= float(sys.argv[4]) <= float(sys.argv[5]), sys.argv[4]
PY
  check "$text: started again to the end (exit $rc)" [ $rc = 0 ]
  check "$text: the weights of the undisturbed run" cmp "$(weights "$scratch/whole")" "$(weights "$run")"
  check "$text: no process is left" no_process "$run"
  [ "$failures" = 0 ] || { tail -n 30 "$run.log"; break; }
done

# A job that is suspended as a whole, as Slurm does, longer than T: no rank failed, and it goes on.
run=$scratch/suspended
"$program" train "$small" "${quick[@]}" --out "$run" >"$run.log" 2>&1 & job=$!
python3 - "$run" <<'PY'
import os, signal, sys, time
run = sys.argv[1]
while not (os.path.exists(run + "/metrics.jsonl") and '"step":10,' in open(run + "/metrics.jsonl").read()): time.sleep(0.01)
ranks = []
for p in filter(str.isdigit, os.listdir("/proc")):
    try:
        env, cmd = open(f"/proc/{p}/environ").read(), open(f"/proc/{p}/cmdline").read()
    except OSError:
        continue
    if "OMPI_COMM_WORLD_RANK=" in env and f"--out\0{run}\0" in cmd + "\0": ranks.append(int(p))
assert len(ranks) == 2
for sig, pause in ((signal.SIGSTOP, 9), (signal.SIGCONT, 0)):
    for p in ranks: os.kill(p, sig)
    time.sleep(pause)
PY
wait $job; rc=$?
check "a suspended job goes on to its end (exit $rc)" [ $rc = 0 -a ! -e "$run/postmortem.json" ]
check "with the weights of the undisturbed run" cmp "$(weights "$scratch/whole")" "$(weights "$run")"
check "and the parent said meanwhile that they are stopped" grep -qE "all ranks on this host have been stopped for [0-9]+ s .*kill -CONT [0-9]+ [0-9]+" "$run.log"
finish
