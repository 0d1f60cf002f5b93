#!/usr/bin/env bash
# On a machine with a GPU and CUDA's compute-sanitizer: in steps of both networks our kernels read and write nothing beside their maps, and threads
# of a block do not race. Needs CHEXNET_PROGRAM or a build folder; the bundle carries this script.
[ -e /dev/nvidiactl ] || { echo "skipped: no GPU on this machine"; exit 77; }
command -v compute-sanitizer >/dev/null || { echo "skipped: no compute-sanitizer on this machine"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
# Images whose maps have odd sides, too: 72, 36, 18, 9, 4, 2 pixels. Kernels of others are left alone, which takes minutes less. Races are looked
# for in fp32 alone: in bf16 the tool itself ended (docs/gpu.md).
look() {  # look TOOL MODEL PRECISION KERNELS
  compute-sanitizer --tool "$1" --kernel-name "kns=$4" --target-processes all --error-exitcode 99 "$program" bench step \
    --model "$2" --device cuda --precision "$3" --batch 3 --size 72 --steps 1 --resident >"$scratch/$1-$2-$3-$4" 2>&1
}
jobs_of=()
for what in "memcheck densenet121 bf16 batch_norm" "memcheck densenet121 bf16 pool" "memcheck resnet50 bf16 batch_norm" \
            "memcheck resnet50 bf16 pool" "memcheck resnet50 bf16 relu_backward" "racecheck densenet121 fp32 batch_norm"; do
  look $what & jobs_of+=("$! ${what// /-}")
done
for one in "${jobs_of[@]}"; do
  read -r job name <<<"$one"
  wait "$job"; rc=$?
  check "$name (exit $rc)" [ $rc = 0 ]
  check "$name: all of the step was looked at" grep -qE "(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)" "$scratch/$name"
  [ $rc = 0 ] || tail -n 15 "$scratch/$name"
done
finish
