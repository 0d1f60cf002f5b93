#!/usr/bin/env bash
# A step that is recorded and launched as one piece ends with the bits of a step that is launched kernel by kernel; a wrong
# recording is found, and then all ranks go on kernel by kernel.
source tests/fakegpu/lib.sh
quick=("${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=8 --set launch.bucket_mb=4 --set train.warmup_epochs=1)
start() {  # start RANKS NAME ARGUMENTS...
  mpi "$1" train "$small" "${quick[@]}" --out "$scratch/$2" "${@:3}" 2>"$scratch/log-$2" || { tail -n 20 "$scratch/log-$2"; exit 1; }
}
same() {  # same TEXT NAME NAME: to the last bit
  check "$1" look 'near_runs(a, b, 0, 0)' "$scratch/$2" "$scratch/$3"
  check "$1: optimizer too" cmp "$scratch"/{"$2","$3"}/checkpoints/last/optimizer.safetensors
}
equal() {  # equal RANKS NAME ARGUMENTS...: recorded and not, whose rate of learning rises from step to step
  start "$1" "$2-off" --set train.record_step=off "${@:3}"
  start "$1" "$2-on" --set train.record_step=on "${@:3}"
  same "$2, $1 rank(s)" "$2-off" "$2-on"
}
equal 1 plain
equal 4 plain-4
# BatchNorm's results are computed again in backward: the same bits.
start 1 recomputed --set train.record_step=on --set model.memory=recompute
same "model.memory=recompute" plain-off recomputed
check "it is told" grep -q "BatchNorm twice (model.memory)" "$scratch/log-recomputed"
resnet=(--set model.arch=resnet50 --set train.max_steps=2 --set train.accumulate=2 --set model.sync_batchnorm=true --set train.record_step=off)
start 2 resnet "${resnet[@]}"
start 2 resnet-recomputed "${resnet[@]}" --set model.memory=recompute
check "model.memory=recompute, ResNet-50: the optimizer's moments" cmp "$scratch"/{resnet,resnet-recomputed}/checkpoints/last/optimizer.safetensors
equal 2 parts --set train.loss=asymmetric --set train.accumulate=2 --set train.clip_norm=0.5 --set train.ema=0.9 --set launch.gradient_compression=bf16
equal 2 shared --set model.sync_batchnorm=true --set train.optimizer=sgd
equal 1 fp16 --set train.precision=fp16 --set train.lr=1 --set train.warmup_epochs=0
check "steps were skipped" look 'assert a["loss_scale"]["value"] < 65536' "$(weights "$scratch/fp16-on" | xargs dirname)/state.json"
# Two recordings, one of frozen blocks and one of all.
equal 2 thawed --set train.batch=32 --set model.freeze_until=block2 --set model.freeze_epochs=1 --set train.layer_decay=0.5 --set train.ema=0.9
check "it thawed" grep -q "all is trained from here on" "$scratch/log-thawed-on"
start 2 first --set train.record_step=on --set train.max_steps=5
start 2 first --set train.record_step=on --resume yes
start 2 whole --set train.record_step=off
same "stopped and resumed" whole first

# A rank whose GPU takes no graphs: all ranks launch kernel by kernel, and one line says so.
FAKE_GPU_NO_GRAPHS=1 start 2 none
check "one line says so" [ "$(grep -c "a step cannot be recorded.*all ranks launch a step's kernels one by one" "$scratch/log-none")" = 1 ]
same "a rank without graphs" whole none
FAKE_GPU_NO_GRAPHS=1 refused 5 "train.record_step=on asks for it" train "$small" "${quick[@]}" --ranks 2 --set train.record_step=on --out "$scratch/refused"

# A timeline of some steps has what the GPU computed in these, whether the host waited for each (run.log_every) or not.
for steps in 6:6 6:8; do
  for every in 1 1000; do
    start 1 "line-$steps-$every" --set train.record_step=on --set run.log_every=$every --timeline "$scratch/$steps-$every.json" --steps $steps
  done
done
start 2 line-two --set train.record_step=on --timeline "$scratch/two.json" --steps 6:8
check "it shows the CUDA streams of each rank" look '
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in a["traceEvents"] if e["name"] == "thread_name"}
for rank in 0, 1:
    spans = {}
    for e in a["traceEvents"]:
        if e["ph"] == "X" and e["pid"] == rank: spans.setdefault(names[rank, e["tid"]], []).append(e["name"])
    assert spans["GPU: compute stream"] == ["forward and backward", "waiting for gradients"] * 3, spans["GPU: compute stream"]
    assert "all-reduce of bucket 0" in spans["GPU: communication stream"], spans
' "$scratch/two.json"
check "a timeline of N steps has the computing of N" look '
one, as_well, three, these = (sum(e.get("name") == "computing on the GPU" for e in t["traceEvents"]) for t in (a, b, c, d))
assert 0 < one == as_well and three == these == 3 * one, (one, as_well, three, these)
' "$scratch"/6:6-1.json "$scratch"/6:6-1000.json "$scratch"/6:8-1.json "$scratch"/6:8-1000.json

# The whole run, with the steps that a recording is compared by: a stream does one thing at a time. And the step time that is told
# of a window is that of the window.
start 2 line-whole --set train.record_step=on --set model.sync_batchnorm=true --timeline "$scratch/whole.json"
check "nothing overlaps on a CUDA stream" look '
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in a["traceEvents"] if e["name"] == "thread_name"}
rows = {}
for e in a["traceEvents"]:
    if e["ph"] == "X" and names[e["pid"], e["tid"]].startswith("GPU: "): rows.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"], e["name"]))
assert len(rows) == 4 and any(name == "waiting for moments" for row in rows.values() for _, _, name in row)
for row in rows.values():
    row.sort()
    for before, after in zip(row, row[1:]): assert after[0] >= before[1] - 10, (before, after)  # times are floats of milliseconds
' "$scratch/whole.json"
told=$(sed -n 's/.*6:6-1000.json.*, step \([0-9.]*\) ms.*/\1/p' "$scratch/log-line-6:6-1000")
check "a window of one step is told as one step: $told ms" look "
spans = [(e['ts'], e['ts'] + e['dur']) for e in a['traceEvents'] if e['ph'] == 'X']
whole = (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e3
assert 0 < float('$told') <= 1.2 * whole + 5, whole
" "$scratch/6:6-1000.json"

# In the steady state: one launch for the step, and little beside it; no memory, and no wait for an idle GPU.
export FAKE_GPU_STEP_LOG=$scratch/steps
FAKE_CUDA_LAZY=1 FAKE_CUDA_DELAY_US=0 start 2 counted --set train.record_step=on --set run.log_every=1000
unset FAKE_GPU_STEP_LOG
check "a recorded step is one launch, and nothing waits" python3 tests/support/order_checks.py recorded "$scratch"/steps.*
finish
