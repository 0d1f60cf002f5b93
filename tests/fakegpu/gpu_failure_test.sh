#!/usr/bin/env bash
# A kernel that never ends, an all-reduce that never ends and a rank that is gone are three different diagnoses; no process stays.
source tests/fakegpu/lib.sh
T=6
quick=("${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.max_steps=100000 --set launch.bucket_mb=8 --set launch.timeout_s=$T)
more=()
fails() {  # fails NAME CODE TEXT [VARIABLE=VALUE...]: a run of RANKS (default 4) ends with CODE and says TEXT
  local name=$1 code=$2 text=$3 rc=0; shift 3
  env "$@" mpirun --map-by socket --oversubscribe "${root[@]}" -np "${RANKS:-4}" "$program" train "$small" "${quick[@]}" "${more[@]}" --out "$scratch/$name" >"$scratch/log" 2>&1 || rc=$?
  check "$name: exit $rc" [ $rc = "$code" ]
  check "$name: $text" grep -qE -- "$text" "$scratch/log"
  check "$name: no process is left" no_process "$scratch/$name"
  [ "$failures" = 0 ] || tail -n 20 "$scratch/log"
}
fails kernel 7 "Rank 2 on .* the GPU has been computing step [0-9]+ for [0-9.]+ s and does not finish, while others wait for its gradients" FAKE_GPU_FAULTY=2 FAKE_GPU_HANG_AT=30000
fails collective 7 "waited .* for gradients of other ranks.*the network between them does not pass data" FAKE_NCCL_FAULTS=rank=1,never_completes_at=12
fails remote 5 "remote process exited" FAKE_NCCL_FAULTS=rank=1,remote_error_at=12

# In each part of a step: CUDA's queue is full and the host stands in a launch, or it waits. The hung GPU is named, of one rank and of four.
for part in "upload pinned 5" "forward chexnet::batch_norm_apply 150" "backward convolution_backward 230" "optimizer _fused_adam 1"; do
  read -r name in at <<<"$part"
  text="the GPU has been computing step [0-9]+ for [0-9.]+ s and does not finish"
  RANKS=1 fails "alone-$name" 7 "Rank 0 on .*$text; last good checkpoint" FAKE_CUDA_DEVICES=1 FAKE_GPU_HANG_IN="$in" FAKE_GPU_HANG_AT="$at"
  fails "four-$name" 7 "Rank 2 on .*$text" FAKE_GPU_FAULTY=2 FAKE_GPU_HANG_IN="$in" FAKE_GPU_HANG_AT="$at"
done
# In a step that is recorded: the eighth.
RANKS=1 fails alone-recorded 7 "Rank 0 on .*$text" FAKE_CUDA_DEVICES=1 FAKE_GPU_HANG_IN=_fused_adam FAKE_GPU_HANG_AT=11
fails four-recorded 7 "Rank 2 on .*$text" FAKE_GPU_FAULTY=2 FAKE_GPU_HANG_IN=_fused_adam FAKE_GPU_HANG_AT=11
# While a checkpoint is copied to the host: rank 0's alone, as it writes. Two copies are of the steps before.
more=(--set checkpoint.every_steps=2)
RANKS=1 fails alone-checkpoint 7 "Rank 0 on .* has been in checkpoint of step 2 .*, and no rank has moved since" FAKE_CUDA_DEVICES=1 FAKE_GPU_HANG_IN="copy to the host" FAKE_GPU_HANG_AT=60
fails four-checkpoint 7 "Rank 0 on .* has been in checkpoint of step 2 .* while others wait for it" FAKE_GPU_FAULTY=0 FAKE_GPU_HANG_IN="copy to the host" FAKE_GPU_HANG_AT=60
more=()

# Outside of training steps each wait has a separate deadline. At a first run nothing is remembered.
hangs() {  # hangs NAME WORK AT ARGUMENTS...: one rank, whose kernel number AT never ends
  local name=$1 work=$2 at=$3 rc=0; shift 3
  FAKE_CUDA_DEVICES=1 FAKE_GPU_HANG_AT=$at timeout -k 5 120 "$program" "$@" "${fake[@]}" --set launch.timeout_s=$T >"$scratch/log" 2>&1 || rc=$?
  check "$name: exit $rc" [ $rc = 7 ]
  check "$name: its GPU did not finish $work" grep -q "error: .cuda. its GPU did not finish $work in $T s" "$scratch/log"
  [ "$failures" = 0 ] || tail -n 20 "$scratch/log"
}
FAKE_GPU_HANG_IN=batch_norm_apply hangs evaluation "a batch of the evaluation" 300 train "$small" --set train.max_steps=2 --set data.val_fraction=0.2 --set eval.splits=[] --out "$scratch/evaluation"
run=$scratch/scored
FAKE_CUDA_DEVICES=1 "$program" train "$small" "${fake[@]}" --set train.max_steps=1 --set data.val_fraction=0 --set eval.splits=[] --out "$run" 2>"$scratch/log" || tail -n 5 "$scratch/log"
hangs weights "taking in the weights" 500 evaluate "$run" --split test
hangs evaluate "a batch of the evaluation" 2000 evaluate "$run" --split test --out "$scratch/scores.csv"
check "evaluate leaves no half-written table" [ ! -e "$scratch/scores.csv" ]
hangs predict "a batch of the evaluation" 2000 predict "$run" "$phantom/images" --out "$scratch/predicted.csv"
hangs maps "a batch of heat maps" 3000 predict "$run" "$phantom/images/00000001_000.png" --heatmaps "$scratch/maps"
XDG_CACHE_HOME=$scratch/cache hangs contact "a step of the self-test" 300 train "$small" --out "$scratch/contact"
fails first-contact 7 "^rank 1: error: .cuda. its GPU did not finish a step of the self-test in $T s" FAKE_GPU_FAULTY=1 FAKE_GPU_HANG_AT=300 XDG_CACHE_HOME="$scratch/cache"

# A loss that no loss scale mends is not trained through, under fp16 neither.
refused 6 "is not finite" train "$small" "${fake[@]}" --set eval.splits=[] --set eval.every_epochs=0 --set data.val_fraction=0 --set train.precision=fp16 --set train.lr=1000 --set train.max_steps=11 --ranks 1 --out "$scratch/diverged"

run=$scratch/lost
"$program" train "$small" "${quick[@]}" --ranks 4 --out "$run" >"$scratch/log" 2>&1 & job=$!
for _ in $(seq 1200); do grep -q '"step":3,' "$run/metrics.jsonl" 2>/dev/null && break; sleep 0.05; done
pkill -9 -f -n -- "chexnet-train-fake train .*--out $run"
wait $job; rc=$?
check "a rank that is gone ends the run (exit $rc)" [ $rc = 5 ]
check "and is named, as gone" grep -qE "Rank [0-3] on .* died" "$scratch/log"
check "no process is left" no_process "$run"
finish
