#!/usr/bin/env bash
# On a machine with a GPU: trains in bf16 (where the GPU has it) and fp16, resumes fp32 bit for bit, evaluates, and trains on
# two GPUs through NCCL where there are two; the first start in each precision compares a step with the CPU engine. Needs
# CHEXNET_PROGRAM or a build folder; the bundle carries this script.
[ -e /dev/nvidiactl ] || { echo "skipped: no GPU on this machine"; exit 77; }
source "$(dirname "$0")/../lib.sh"
gpu=(--set launch.device=cuda --set eval.every_epochs=0 --set eval.splits=[])
exact=("${gpu[@]}" --set train.precision=fp32 --set train.deterministic=true)

train() { "$program" train "$small" --ranks 1 --out "$@" 2>"$scratch/err.txt" || { tail -n 5 "$scratch/err.txt"; return 1; }; }
check "a run without a stop" train "$scratch/whole" "${exact[@]}"
check "a run that stops after half of its steps" train "$scratch/half" "${exact[@]}" --set train.max_steps=12
cp "$(weights "$scratch/half")" "$scratch/at-half"
check "its resume" train "$scratch/half" "${exact[@]}" --resume yes
check "the same weights, bit for bit" cmp "$(weights "$scratch/whole")" "$(weights "$scratch/half")"
check "the same optimizer" cmp "$scratch"/{whole,half}/checkpoints/last/optimizer.safetensors
check "other weights than at half" bash -c "! cmp -s '$(weights "$scratch/whole")' '$scratch/at-half'"
check "the precision that the GPU gets by itself" train "$scratch/auto" "${gpu[@]}"
check "fp16 with loss scaling" train "$scratch/fp16" "${gpu[@]}" --set train.precision=fp16
check "an evaluation" "$program" evaluate "$scratch/auto" --json
gpus=$(nvidia-smi -L | wc -l)
if [ "$gpus" -ge 2 ]; then
  check "two ranks through NCCL" mpi 2 train "$small" "${gpu[@]}" --out "$scratch/nccl"
else
  echo "skipped: NCCL between ranks needs two GPUs, here is $gpus"
fi
check "a timed step" "$program" bench step --device cuda --batch 64 --resident --at-once 10 --json
finish
