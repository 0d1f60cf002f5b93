#!/usr/bin/env bash
# On a machine with a GPU and an mpirun: two ranks through the real NCCL, on two GPUs or as two hosts that take turns on one (other_host). They are one rank
# with synchronized BatchNorm, and however they end, their resume reaches the same bits. Needs CHEXNET_PROGRAM or a build folder; the bundle
# carries this script.
[ -e /dev/nvidiactl ] || { echo "skipped: no GPU on this machine"; exit 77; }
command -v mpirun >/dev/null || { echo "skipped: no mpirun on this machine"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
[ "$(nvidia-smi -L | wc -l)" -ge 2 ] || hosts=(--host turn-1,turn-2 --mca plm_rsh_agent "$here/other_host")
# A machine without a network has its loopback alone, which Open MPI leaves out.
sed 1,2d /proc/net/dev | grep -qv '^ *lo:' || export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
gone='Rank [01] on |Host turn-[12] [(]rank [01][)] has not been heard|noticed that process rank [01] '
ranks() { mpirun --map-by node --oversubscribe "${root[@]}" "${hosts[@]}" -np 2 "$program" "$@"; }
gpu=(--set launch.device=cuda --set eval.every_epochs=0 --set eval.splits=[] --set data.val_fraction=0 --set train.optimizer=sgd
     --set data.resize=72 --set data.crop=64 --set launch.bucket_mb=8 --set model.sync_batchnorm=true)
train() {  # train NAME ARGUMENTS...: on two ranks
  local name=$1; shift
  ranks train "$small" "${gpu[@]}" --out "$scratch/$name" "$@" 2>"$scratch/log-$name" || { local rc=$?; tail -n 8 "$scratch/log-$name"; return $rc; }
}
alone() {  # alone NAME ARGUMENTS...: on one
  local name=$1; shift
  "$program" train "$small" "${gpu[@]}" --ranks 1 --out "$scratch/$name" "$@" 2>"$scratch/log-$name" || { tail -n 8 "$scratch/log-$name"; return 1; }
}
as_one() {  # as_one PRECISION BOUND
  local few=(--set train.precision="$1" --set train.max_steps=3)
  check "$1: two ranks" train "two-$1" "${few[@]}"
  check "$1: one rank" alone "one-$1" "${few[@]}"
  check "$1: two ranks with synchronized BatchNorm are one within $2" look "near_runs(a, b, $2, $2)" "$scratch"/{one,two}-"$1"
}
as_one fp32 1e-4
check "gradients go through NCCL" grep -q "NCCL .* for gradients" "$scratch/log-two-fp32"
check "the run knows its transports" grep -q '"event":"transports".*"via":"' "$scratch/two-fp32/metrics.jsonl"
check "bf16 by our kernels" train two-bf16 --set train.precision=bf16 --set train.max_steps=3
check "no kernel of ours was found wrong" bash -c "! grep -h \"LibTorch's\" '$scratch'/log-*"

exact=(--set train.precision=fp32 --set train.deterministic=true --set train.max_steps=8 --set train.verify_every=1
       --set checkpoint.every_steps=3)
check "a run without a stop" train whole "${exact[@]}"
reaches_4() { await_step "$scratch/$1" 4 "$scratch/log-$1"; }
train killed "${exact[@]}" & job=$!
reaches_4 killed
kill -9 "$(rank_processes "$scratch/killed" | tail -n 1)"
wait $job; rc=$?
check "a killed rank ends the run (exit $rc)" [ $rc -ne 0 ]
check "and is named" grep -qE "$gone" "$scratch/log-killed"
check "no process is left" no_process "$scratch/killed"
check "its resume" train killed "${exact[@]}" --resume auto
ends_alike "kill -9 and resume" "$scratch/whole" "$scratch/killed"

train frozen "${exact[@]}" --set train.max_steps=100000 --set launch.timeout_s=8 & job=$!
reaches_4 frozen
frozen=$(rank_processes "$scratch/frozen" | tail -n 1)
kill -STOP "$frozen"
wait $job; rc=$?
check "a rank that stands still ends the run (exit $rc)" [ $rc -ne 0 ]
check "and is named" grep -qE "$gone" "$scratch/log-frozen"
kill -9 "$frozen" 2>/dev/null
check "no process is left" no_process "$scratch/frozen"

check "all-reduce of growing size" ranks bench allreduce --json
check "a step with communication" ranks bench step --device cuda --batch 16 --resident --steps 3 --json

# A GPU takes the steps of `exact` in less time than a signal its way to the ranks.
train stopped "${exact[@]}" --set train.max_steps=100000 & job=$!
reaches_4 stopped
pkill -USR1 -f -- "(mpirun|prterun) .*--out $scratch/stopped"
wait $job; rc=$?
check "SIGUSR1 ends with 75 (exit $rc)" [ $rc = 75 ]
steps=(--set train.max_steps=$(($(readlink "$scratch/stopped/checkpoints/last" | grep -oE '[0-9]+$' | sed 's/^0*//') + 4)))
check "its resume" train stopped "${exact[@]}" "${steps[@]}" --resume yes
check "as many steps without a stop" train unstopped "${exact[@]}" "${steps[@]}"
ends_alike "SIGUSR1 and resume" "$scratch/unstopped" "$scratch/stopped"

check "a run that stops after half of its steps" train half "${exact[@]}" --set train.max_steps=4
check "its resume" train half "${exact[@]}" --resume yes
ends_alike "stop and resume" "$scratch/whole" "$scratch/half"
as_one fp64 1e-10  # by LibTorch's operators
finish
