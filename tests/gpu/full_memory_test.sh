#!/usr/bin/env bash
# On a machine with a GPU: a batch without room is named with what computes the same, and train.batch: auto fills most of what is free. Alone on
# the GPU. Needs CHEXNET_PROGRAM or a build folder; the bundle carries this script.
[ -e /dev/nvidiactl ] || { echo "skipped: no GPU on this machine"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
gpu=(--ranks 1 --set launch.device=cuda --set data.resize=1024 --set data.crop=1024 --set data.val_fraction=0 --set train.max_steps=3 --set eval.every_epochs=0
     --set eval.splits=[])
refused 5 "the GPU has no room for a step of 128 images" train "$small" "${gpu[@]}" --set data.resize=2048 --set data.crop=2048 --set train.batch=128 --out "$scratch/full"
check "and how many fit" grep -E "Hint: [0-9]+ images at once fit" "$scratch/err.txt"
finds() { "$program" train "$small" "${gpu[@]}" --set train.batch=auto --out "$scratch/auto" --json >"$scratch/json" 2>"$scratch/log" || { tail -n 5 "$scratch/log"; return 1; }; }
check "a batch that fits is found" finds
check "it says which" grep -E "auto chose [0-9]+ images" "$scratch/log"
check "it fills most of the memory" look "
share = a['peak_bytes'] / ($(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -n 1) * 2**20)
print(f'  {a[\"peak_bytes\"] / 1e9:.1f} GB, {100 * share:.0f} %')
assert a['peak_bytes_of'] == 'gpu' and 0.5 < share <= 1, a" "$scratch/json"
finish
