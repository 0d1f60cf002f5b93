#!/usr/bin/env bash
# On a machine with a GPU: evaluate and predict give the CPU engine's probabilities and heat maps, in fp32 nearly to the digit and in 16 bits
# within their rounding. Needs CHEXNET_PROGRAM or a build folder; the bundle carries this script.
[ -e /dev/nvidiactl ] || { echo "skipped: no GPU on this machine"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../lib.sh"
run=$scratch/run
images=("$phantom"/images/0000000*.png)
gpu=(--set launch.device=cuda) cpu=(--set launch.device=cpu)
"$program" train "$small" "${gpu[@]}" --set train.precision=fp32 --set data.resize=144 --set data.crop=128 --set eval.every_epochs=0 \
  --set eval.splits=[] --ranks 1 --out "$run" 2>"$scratch/log" || { tail -n 5 "$scratch/log"; exit 1; }
near() {  # near TABLE_A TABLE_B BOUND: the same images, and probabilities within BOUND
  look "assert len(a) > 4; near_tables(a, b, $3, without=('positive', 'label', 'error'))" "$1" "$2"
}
scores() {  # scores NAME ARGUMENTS...: of the test images
  "$program" evaluate "$run" --split test --out "$scratch/$1.csv" "${@:2}" >"$scratch/out" 2>"$scratch/log" ||
    { tail -n 5 "$scratch/log"; return 1; }
}
check "evaluate on the CPU" scores cpu "${cpu[@]}"
for precision in fp32 tf32 bf16 fp16; do
  check "evaluate in $precision" scores $precision "${gpu[@]}" --set train.precision=$precision
done
check "fp32: the CPU's probabilities within 1e-4" near "$scratch"/{cpu,fp32}.csv 1e-4
for precision in tf32 bf16 fp16; do check "$precision: within 0.03" near "$scratch"/{cpu,$precision}.csv 0.03; done

maps() {  # maps NAME METHOD ARGUMENTS...
  "$program" predict "$run" "${images[@]}" --out "$scratch/maps-$1-$2.csv" --heatmaps "$scratch/maps-$1-$2" --heatmap-findings Mass \
    --heatmap-method "$2" --set train.precision=fp32 "${@:3}" >"$scratch/out" 2>"$scratch/log" || { tail -n 5 "$scratch/log"; return 1; }
}
for method in layer-cam cam grad-cam; do
  check "$method on the CPU" maps cpu $method "${cpu[@]}"
  check "$method on the GPU" maps gpu $method "${gpu[@]}"
  check "$method: the same probabilities" near "$scratch"/maps-{cpu,gpu}-$method.csv 1e-4
  check "$method: the same pictures" look 'near_pictures(a, b)' "$scratch"/maps-{cpu,gpu}-$method
done
finish
