#!/usr/bin/env bash
# In the steady state of training and of an evaluation the host never waits until a GPU has nothing left to do, and the ranks agree
# about a step while the GPU computes the one before. The fake GPU counts, step by step.
source tests/fakegpu/lib.sh
export FAKE_CUDA_LAZY=1 FAKE_CUDA_DELAY_US=0  # a GPU that is slower than any host: it does what is waited for
quick=("${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=7 --set launch.bucket_mb=4 --set run.log_every=1000)

# What the host may wait for in a step, with work behind it: twice for a batch's copy, before its memory is filled anew, and for the
# outcome of the step before.
steady() {
  python3 - "$@" <<'PY'
import sys
for name in sys.argv[1:]:
    # At each agreement: launches, waits for all, waits for events, work before the GPU.
    rows = [[int(word) for word in line.split()] for line in open(name)]
    rows = [row[1:] for row in rows if row[0] == 4]
    assert len(rows) == 7, rows
    steps = [[b - a for a, b in zip(one, two)][:3] + two[3:] for one, two in zip(rows, rows[1:])]
    print("  launches, waits for all, for events, work left:", steps)
    for launches, for_all, for_events, left in steps[2:]:
        assert launches > 1000, launches
        assert for_all == 0, f"the GPU had nothing to do {for_all} times"
        assert for_events == 3, for_events
        assert left > launches / 2, "the ranks agreed when the GPU had done its step"
PY
}
# While a batch is evaluated the one before is computed; the end of a split is waited for.
evaluation() {
  python3 - "$@" <<'PY'
import sys
for name in sys.argv[1:]:
    rows = [[int(word) for word in line.split()] for line in open(name)]
    rows = [row[1:] for row in rows if row[0] == 1]
    asked = [[b - a for a, b in zip(one, two)][:3] + two[3:] for one, two in zip(rows, rows[1:])]
    batches = [row for row in asked if 610 < row[0] < 630]  # not a step, not a checkpoint
    print("  launches, waits for all, for events, work left:", batches)
    assert len(batches) == 7, batches
    assert [row[1] for row in batches[:-1]] == [0] * 6, "the GPU had nothing to do"
    assert all(left > launches / 2 for launches, _, _, left in batches[:-1]), "the host read logits first"
PY
}
for run in 1-fp32 2-fp16; do
  FAKE_GPU_STEP_LOG=$scratch/$run mpi ${run%-*} train "$small" "${quick[@]}" --set train.precision=${run#*-} --out "$scratch/run-$run" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
  check "$run: no step waits for the GPU" steady "$scratch/$run".*
done
FAKE_GPU_STEP_LOG=$scratch/evaluation mpi 2 train "$small" "${quick[@]}" --set train.max_steps=1 --set eval.splits=[test] --set eval.batch=4 --out "$scratch/run" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
check "no batch of an evaluation waits for the GPU" evaluation "$scratch/evaluation".*
finish
