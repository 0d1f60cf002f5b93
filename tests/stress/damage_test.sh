#!/usr/bin/env bash
# Damaged images: found before training where they will be scored, limited where they are left out, never scored, and
# left out from a resume on.
set -u
source tests/lib.sh
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
says() { if grep -qE -- "$1" "${2:-$scratch/err.txt}"; then echo "ok: $1"; else fail "wanted text: $1"; tail -n 8 "${2:-$scratch/err.txt}"; fi; }
cp -r "$phantom/images" "$scratch/images"
damage() { head -c 300 "$phantom/images/$1" >"$scratch/images/$1"; }
mend() { cp "$phantom/images/$1" "$scratch/images/$1"; }
at=(--set data.images=["$scratch/images"])
few=(--set train.max_steps=2)
tested=$(sed -n 2p "$phantom/test_list.txt")
trained=$(sed -n 7p "$phantom/train_val_list.txt")

# Of the test split: before training, which leaves nothing behind.
damage "$tested"
refused 3 "[test] 1 of $(wc -l <"$phantom/test_list.txt") images are damaged. Hint: " train "$small" "${at[@]}" --out "$scratch/early"
says "$tested: damaged PNG"
check "nothing was trained" [ ! -e "$scratch/early/config.yaml" ]
check "with skip it is left out" "$program" train "$small" "${at[@]}" "${few[@]}" --set data.corrupt=skip --out "$scratch/skip" 2>"$scratch/err.txt"
says "of $(wc -l <"$phantom/test_list.txt") images, 1 damaged"
csv=$scratch/skip/predictions_test.csv
"$program" evaluate "$scratch/skip" --set data.corrupt=skip --ranks 2 --out "$scratch/two.csv" --json >"$scratch/a.json" 2>/dev/null
check "on any number of ranks the same" cmp "$csv" "$scratch/two.csv"
check "its probabilities are blank, its labels and the reason stand there" look "
(blank,) = [r for r in a if not any(v for k, v in r.items() if k.startswith('prob:'))]
assert blank['image'] == '$tested' and 'damaged PNG' in blank['reason'], blank
assert all(v in ('0', '1') for k, v in blank.items() if k.startswith('label:')), blank
assert not any(r['reason'] for r in a if r != blank)" "$csv"
"$program" evaluate --predictions "$csv" --json >"$scratch/b.json" 2>/dev/null
check "figures of the images that were scored" look '
assert a["damaged"] == b["damaged"] == 1 and all(a[k] == b[k] for k in ("images", "auroc", "mean_auroc")), (a, b)' "$scratch"/{a,b}.json
says '1 damaged image of the test split left out' "$scratch/skip/report.html"
refused 3 "[test] 1 of" evaluate "$scratch/skip" --set data.corrupt=fail
mend "$tested"

# In training: the run ends, and goes on without the image.
damage "$trained"
rest=(--set eval.splits=[] --set data.val_fraction=0 --set checkpoint.every_steps=1)
refused 3 "$trained: damaged PNG" train "$small" "${at[@]}" "${rest[@]}" --out "$scratch/run"
check "a resume may leave it out" "$program" train "$small" "${at[@]}" "${rest[@]}" --out "$scratch/run" --resume --set data.corrupt=skip 2>"$scratch/err.txt"
says "$trained.*\(skipped\)"

# Too many.
for i in $(seq 10 2 40); do damage "$(sed -n ${i}p "$phantom/train_val_list.txt")"; done
for ranks in 1 2; do
  refused 3 "images are damaged, data.corrupt (2.0 %) allows 2" train "$small" "${at[@]}" "${rest[@]}" --set data.corrupt=0.02 --ranks $ranks --out "$scratch/many-$ranks"
done
for name in $(cat "$phantom/train_val_list.txt"); do damage "$name"; done
refused 3 "all 8 images of a step are damaged" train "$small" "${at[@]}" "${rest[@]}" --set data.corrupt=1 --out "$scratch/all"
finish
