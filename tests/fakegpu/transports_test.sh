#!/usr/bin/env bash
# A run on several GPUs says how NCCL connects them, and names a pair that could be faster; NCCL's log is not left on.
source tests/fakegpu/lib.sh
env >"$scratch/before"
check "the test asks NCCL for nothing" bash -c "! grep -q NCCL_DEBUG '$scratch/before'"
quick=("${fake[@]}" --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=1)
start() {  # start NAME ARGUMENTS...
  mpi 4 train "$small" "${quick[@]}" --out "$scratch/$1" "${@:2}" 2>"$scratch/log-$1" || { tail -n 20 "$scratch/log-$1"; exit 1; }
}

start good --set run.after_checkpoint="env >$scratch/inherited"
check "the record has every pair and who uses it" look '
shown = {x["used_by"]: x for x in a["transports"]["connections"]}
assert a["transports"]["channels"] == 1
assert shown["ring and tree"]["pairs"] == [[0, 1], [1, 2], [2, 3]]
assert shown["ring"]["pairs"] == [[3, 0]]
assert shown["tree"]["pairs"] == [[1, 0], [2, 1], [3, 2]]
assert all(x["via"] == "P2P/CUMEM" and not x["concern"] for x in shown.values())
start = [x for x in b if x["event"] == "transports"]
assert len(start) == 1 and start[0]["connections"] == a["transports"]["connections"]' "$scratch/good"/{results.json,metrics.jsonl}
check "the log has a line" grep -q 'transports: 1 channel; P2P/CUMEM: 7 pairs' "$scratch/log-good"
check "the page has the table" grep -q 'P2P/CUMEM</th><td>0 -&gt; 1, 1 -&gt; 2, 2 -&gt; 3</td><td>ring and tree</td>' "$scratch/good/report.html"
check "no warning where all is well" bash -c "! grep -q 'warning: \[nccl\]' '$scratch/log-good'"
check "what the run starts inherits nothing" bash -c "grep -q ^PATH= '$scratch/inherited' && ! grep -q NCCL_DEBUG '$scratch/inherited'"
check "nothing of NCCL's log is on the output" bash -c "! grep -q 'NCCL INFO' '$scratch/log-good'"

FAKE_NCCL_FAULTS=rank=1,through_host_memory=1 start slow
check "one pair through host memory is told" grep -qE 'warning: \[nccl\] rank 1 on [^ ]+ \(.*\) -> rank 2 on .*: SHM/direct/direct, through host memory .* Hint: NCCL_P2P_DISABLE' "$scratch/log-slow"
check "once" [ "$(grep -c 'warning: \[nccl\]' "$scratch/log-slow")" = 1 ]
check "and is in the record" look '
slow = [x for x in a["transports"]["connections"] if x["concern"]]
assert [x["pairs"] for x in slow] == [[[1, 2]]], slow' "$scratch/slow/results.json"
check "and on the page" grep -q 'SHM/direct/direct</th><td>1 -&gt; 2</td>.*through host memory' "$scratch/slow/report.html"

NCCL_DEBUG=WARN FAKE_NCCL_FAULTS=rank=1,through_host_memory=1 start asked
check "what the user asks of NCCL stays as it is" look 'assert a["transports"] == {"not_recorded": "NCCL_DEBUG is set"}' "$scratch/asked/results.json"
check "and is told" grep -q 'transports: not recorded, as NCCL_DEBUG is set' "$scratch/log-asked"
NCCL_DEBUG=INFO mpi 4 train "$small" "${quick[@]}" --set eval.splits=[] --out "$scratch/info" >"$scratch/out-info" 2>&1
check "a log that the user wants comes out" grep -q 'NCCL INFO Ring 00' "$scratch/out-info"

FAKE_CUDA_DEVICES=2 mpi 2 doctor --device cuda >"$scratch/doctor" 2>/dev/null
check "doctor reads the same" grep -q 'PASS  NCCL transports .*2 of 2 pairs' "$scratch/doctor"
finish
