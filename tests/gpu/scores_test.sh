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
  python3 - "$@" <<'PY'
import csv, sys
a, b = (list(csv.reader(open(name))) for name in sys.argv[1:3])
assert len(a) == len(b) > 5 and a[0] == b[0] and [row[0] for row in a] == [row[0] for row in b]
columns = [i for i, name in enumerate(a[0]) if i and "positive" not in name and "label" not in name and "error" not in name]
pairs = [(x[i], y[i]) for x, y in zip(a[1:], b[1:]) for i in columns]
assert pairs and all((x == "") == (y == "") for x, y in pairs)
worst = max(abs(float(x) - float(y)) for x, y in pairs if x)
print(f"  {len(pairs)} numbers, {worst:.1e} apart")
sys.exit(worst > float(sys.argv[3]))
PY
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
alike() {  # alike FOLDER_A FOLDER_B: pictures by name, values of 0 to 255
  python3 - "$@" <<'PY'
import os, sys
try:
    import numpy, PIL.Image
except ImportError:
    sys.exit(print("  skipped: no numpy and PIL to read pictures with"))
a, b = sys.argv[1:3]
names = sorted(n for n in os.listdir(a) if n.endswith(".png"))
assert names and names == sorted(n for n in os.listdir(b) if n.endswith(".png")), names
read = lambda path: numpy.asarray(PIL.Image.open(path)).astype(float)
mean = [abs(read(f"{a}/{n}") - read(f"{b}/{n}")).mean() for n in names]
print(f"  {len(names)} pictures, means {max(mean):.3f} apart")
sys.exit(int(max(mean) > 1))
PY
}
for method in layer-cam cam grad-cam; do
  check "$method on the CPU" maps cpu $method "${cpu[@]}"
  check "$method on the GPU" maps gpu $method "${gpu[@]}"
  check "$method: the same probabilities" near "$scratch"/maps-{cpu,gpu}-$method.csv 1e-4
  check "$method: the same pictures" alike "$scratch"/maps-{cpu,gpu}-$method
done
finish
