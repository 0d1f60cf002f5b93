#!/usr/bin/env bash
# scripts/reference/load_torchvision.py against the program on files as found in the wild: gray values where Pillow is, scores
# where PyTorch and torchvision are too. PYTHONS names interpreters to look in (default: python3).
source tests/lib.sh
xray=$(cd "${CHEXNET_XRAY_DIR:-../shared/xray}" 2>/dev/null && pwd) && [ -d "$xray/odd_derived" ] || { echo "skipped: no X-rays (set CHEXNET_XRAY_DIR)"; exit 77; }
read -ra pythons <<<"${PYTHONS:-python3}"
python_with() { local py; for py in "${pythons[@]}"; do "$py" -c "import $1" 2>/dev/null && { echo "$py"; return; }; done; return 1; }
pillow=$(python_with PIL,numpy) || { echo "skipped: no Python with Pillow and numpy among: ${pythons[*]}"; exit 77; }

cat >"$scratch/gray.py" <<PY
import sys, types
for absent in ("torch", "torchvision", "safetensors"):
    sys.modules[absent] = types.ModuleType(absent)
sys.modules["safetensors"].safe_open = None
sys.path.insert(0, "$source_folder/scripts/reference")
import numpy as np
from load_torchvision import gray_pixels
of = lambda name: gray_pixels("$xray/" + name).astype(int)
sixteen = np.abs(of("odd_derived/g16_00011925_032.png") - of("nih352/images/00011925_032.png"))
turned = np.abs(of("odd_derived/exif6_00001992_013.jpg") - of("nih352/images/00001992_013.png"))
sys.exit(1 if sixteen.max() > 0 or turned.max() > 24 or turned.mean() > 1.5 else 0)
PY
check "16-bit samples by 257, JPEGs upright" "$pillow" "$scratch/gray.py"

torch=$(python_with torch,torchvision,safetensors) || { echo "skipped: scores (no Python with PyTorch, torchvision and safetensors)"; finish; exit; }
python3 - "$xray" "$scratch" <<'PY'
import os, sys
xray, scratch = sys.argv[1:]
names = [n for f in ("odd", "odd_derived") for n in sorted(os.listdir(f"{xray}/{f}"))]
skipped = ("truncated_", "badcrc_", "empty", "html", "webp_", "cmyk_")  # broken, or of a form that either side may refuse
names = [n for n in names if n.lower().endswith((".png", ".jpg")) and not n.startswith(skipped)]
with open(f"{scratch}/odd.csv", "w") as f:
    f.write("image,A,B\n" + "".join(f'"{n}",{i % 2},{i // 2 % 2}\n' for i, n in enumerate(names)))
open(f"{scratch}/train.txt", "w").write("\n".join(names[:8]))
open(f"{scratch}/test.txt", "w").write("\n".join(names[8:]))
PY
for scale in off auto; do
  check "trains with data.jpeg_scale $scale" "$program" train "$small" --out "$scratch/$scale" --set data.manifest.format=csv \
    --set data.manifest.path="$scratch/odd.csv" --set data.images=["$xray/odd","$xray/odd_derived"] --set data.train_list="$scratch/train.txt" \
    --set data.test_list="$scratch/test.txt" --set data.val_fraction=0 --set data.resize=128 --set data.crop=112 --set train.max_steps=2 \
    --set data.jpeg_scale=$scale 2>"$scratch/log"
  "$program" evaluate "$scratch/$scale" --split test --out "$scratch/$scale.csv" >/dev/null 2>&1
done
cat >"$scratch/scores.py" <<PY
import csv, os, sys
sys.path.insert(0, "$source_folder/scripts/reference")
import torch
from load_torchvision import load, preprocess
net, about = load("$scratch/" + sys.argv[1] + "/checkpoints/last/model.safetensors")
place = lambda n: next(p for p in ("$xray/odd/" + n, "$xray/odd_derived/" + n) if os.path.exists(p))
worst = 0
for row in csv.DictReader(open("$scratch/" + sys.argv[1] + ".csv")):
    with torch.no_grad():
        theirs = torch.sigmoid(net(preprocess(place(row["image"]), about)))[0].tolist()
    worst = max([worst] + [abs(a - float(row["prob:" + f])) for f, a in zip(about["findings"], theirs)])
print("largest difference of a probability:", worst)
sys.exit(1 if worst > 2e-5 else 0)
PY
check "off: the program's scores are PyTorch's" "$torch" "$scratch/scores.py" off
"$torch" "$scratch/scores.py" auto >/dev/null 2>"$scratch/err"
check "auto: the script says that large JPEGs differ" grep -q "data.jpeg_scale: auto" "$scratch/err"
finish
