#!/usr/bin/env bash
# scripts/reference/load_torchvision.py against the program on files as found in the wild: gray values where Pillow is, scores
# where PyTorch and torchvision are too. PYTHONS names interpreters to look in (default: python3).
source tests/lib.sh
checks=$source_folder/tests/app/input_checks.py
xray=$(cd "${CHEXNET_XRAY_DIR:-../shared/xray}" 2>/dev/null && pwd) && [ -d "$xray/odd_derived" ] || { echo "skipped: no X-rays (set CHEXNET_XRAY_DIR)"; exit 77; }
read -ra pythons <<<"${PYTHONS:-python3}"
python_with() { local py; for py in "${pythons[@]}"; do "$py" -c "import $1" 2>/dev/null && { echo "$py"; return; }; done; return 1; }
pillow=$(python_with PIL,numpy) || { echo "skipped: no Python with Pillow and numpy among: ${pythons[*]}"; exit 77; }

check "16-bit samples by 257, JPEGs upright" "$pillow" "$checks" gray "$xray"

torch=$(python_with torch,torchvision,safetensors) || { echo "skipped: scores (no Python with PyTorch, torchvision and safetensors)"; finish; exit; }
python3 "$checks" lists "$xray" "$scratch"
for scale in off auto; do
  check "trains with data.jpeg_scale $scale" "$program" train "$small" --out "$scratch/$scale" --set data.manifest.format=csv \
    --set data.manifest.path="$scratch/odd.csv" --set data.images=["$xray/odd","$xray/odd_derived"] --set data.train_list="$scratch/train.txt" \
    --set data.test_list="$scratch/test.txt" --set data.val_fraction=0 --set data.resize=128 --set data.crop=112 --set train.max_steps=2 \
    --set data.jpeg_scale=$scale 2>"$scratch/log"
  "$program" evaluate "$scratch/$scale" --split test --out "$scratch/$scale.csv" >/dev/null 2>&1
done
check "off: the program's scores are PyTorch's" "$torch" "$checks" scores "$xray" "$scratch/off"
"$torch" "$checks" scores "$xray" "$scratch/auto" >/dev/null 2>"$scratch/err"
check "auto: the script says that large JPEGs differ" grep -q "data.jpeg_scale: auto" "$scratch/err"
finish
