#!/usr/bin/env bash
# On a machine with a GPU: trains on CUDA in bf16 with one rank (through NCCL with two, where there are two GPUs), resumes bit for bit,
# and times a step. Needs CHEXNET_PROGRAM or a build folder; the bundle carries this script.
[ -e /dev/nvidiactl ] || { echo "skipped: no GPU on this machine"; exit 77; }
source "$(dirname "$0")/../lib.sh"
gpu=(--set launch.device=cuda --set train.precision=bf16)
check "a run on CUDA in bf16" "$program" train "$small" "${gpu[@]}" --ranks 1 --set checkpoint.every_steps=12 --set eval.every_epochs=0 --out "$scratch/gpu" --json
check "its evaluation" "$program" evaluate "$scratch/gpu" --set train.precision=fp32 --json
check "a run on CUDA in fp16 with loss scaling" "$program" train "$small" --set launch.device=cuda --set train.precision=fp16 --ranks 1 --out "$scratch/fp16"
gpus=$(nvidia-smi -L | wc -l)
if [ "$gpus" -ge 2 ]; then check "two ranks through NCCL" mpi 2 train "$small" "${gpu[@]}" --out "$scratch/nccl"; else echo "skipped: NCCL between ranks needs two GPUs, here is $gpus"; fi
check "a timed step" "$program" bench step --device cuda --precision bf16 --batch 64 --json
finish
