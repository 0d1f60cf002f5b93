#!/usr/bin/env bash
# The use of a run's GPUs, where users look: the log, status, Prometheus, results.json and the report; also of a killed run.
source tests/fakegpu/lib.sh
export LD_LIBRARY_PATH=$CHEXNET_BUILD/fakes/fake_nvml FAKE_NVML=$scratch/gpus.yaml
cat >"$FAKE_NVML" <<'YAML'
driver: 580.65.06
gpus:
  - {name: V100, uuid: GPU-fake-0, memory_total: 16e9, memory_used: 2147483648, utilization: 96, power_w: 200, sm_clock_mhz: 1400, throttle: 0}
  - {name: V100, uuid: GPU-fake-1, memory_total: 16e9, memory_used: 1073741824, utilization: 40, power_w: 100, sm_clock_mhz: 1200, throttle: 0x40}
YAML
mkdir "$scratch/prometheus"
run() { mpi 2 train "$small" "${fake[@]}" --set run.prometheus="$scratch/prometheus" "$@" 2>"$scratch/log"; }
# Steps enough for some samples, of which there is one a second.
run --out "$scratch/run" --set train.max_steps="${CHEXNET_STEPS:-120}" --set data.val_fraction=0
check "the log tells what they did" grep -qF 'GPUs: 68 % busy in the mean (rank 1 least, 40 %), over 90 % in 50 % of the samples, at most 2.0 GiB each, 300 W, 1300 MHz, ' "$scratch/log"
check "and that the rule is broken, and by what" grep -qE 'busy at least 80 % of the time\) does not hold for rank 1, 40 % busy: of the 60 % idle, .*\. Hint: ' "$scratch/log"
check "results.json has it" look '
t = a["gpu_totals"]
assert t["gpus"] == 2 and t["utilization"] == 68 and t["least_rank"] == 1 and not t["keeps_rule"], t
assert t["by_rank"]["power_w"] == {"0": 200, "1": 100} and t["memory_bytes"] == 2**31, t
assert abs(sum(t["idle"].values()) - 32) < 1e-6, t["idle"]
assert t["throttled_fraction"] == 1 and t["throttle_reasons"] == "hardware thermal", t
assert 0 < t["energy_j"] < 300 * t["seconds"] and abs(t["joules_per_image"] * t["images"] - t["energy_j"]) < 1e-6, t
assert 0 < t["flops_utilization"], t
' "$scratch/run/results.json"
check "the page, too" grep -qF '68 % busy in the mean (rank 1 least, 40 %)' "$scratch/run/report.html"
check "status says the same" bash -c "'$program' status '$scratch/run' | grep -qF '68 % busy in the mean (rank 1 least, 40 %)'"
for gauge in gpu_busy_total_ratio gpu_energy_joules gpu_clock_hertz gpu_throttled_ratio flops_utilization_ratio; do
  check "Prometheus has $gauge" bash -c "cat '$scratch'/prometheus/*.prom | grep -qE '^chexnet_train_$gauge\{.*\} [0-9]'"
done

# A run that stops with a checkpoint logs them up to there.
run --out "$scratch/stopped" --set train.max_steps=100000 &
await "its GPUs are told" grep -qs '"event":"gpus"' "$scratch/stopped/metrics.jsonl"
touch "$scratch/stopped/STOP"; wait $! || rc=$?
check "exit ${rc:-0}: stopped, with its GPUs in the log" bash -c "[ ${rc:-0} = 75 ] && grep -q '^GPUs: 68 % busy' '$scratch/log'"
check "its last gpus line is of the stop" look '
gpus = [e for e in a if e["event"] == "gpus"]; stop = [e for e in a if e["event"] == "stop"]
assert len(gpus) > 1 and gpus[-1]["step"] == stop[-1]["step"], (gpus[-1], stop)
' "$scratch/stopped/metrics.jsonl"

# A killed run leaves the figures that it had logged.
run --out "$scratch/killed" --set train.max_steps=100000 &
await "its GPUs are told" grep -qs '"event":"gpus"' "$scratch/killed/metrics.jsonl"
pkill -KILL -f -- "--out $scratch/killed"; wait || true
"$program" status "$scratch/killed" --json >"$scratch/status"
check "status of a killed run knows its GPUs" look 'r = a[0]; assert r["state"] != "running" and r["gpu_totals"]["utilization"] == 68, r' "$scratch/status"
finish
