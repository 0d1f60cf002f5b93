#!/usr/bin/env bash
# Folds answer as one: the tables that `ensemble` makes of their records are what the networks compute, each command takes the
# ensemble as a run, and nothing that a member was trained on is scored.
source tests/lib.sh
checks=$source_folder/tests/app/ensemble_checks.py
cv=$scratch/cv all=$scratch/all
for fold in 1 2 3; do
  "$program" train "$small" --out "$cv/f$fold" --set data.fold=$fold/3 --set eval.splits=[val,test] --set train.max_steps=5 \
    --set eval.examples=0 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
done
fork_starts
ensemble() { "$forked" ensemble "$@" >"$scratch/out" 2>"$scratch/err"; }
check "a folder of folds becomes a run" ensemble "$cv" --out "$all"
check "it says how the ensemble stands to its members" grep -qE '^members, mean ± sd +0\.[0-9]{4} ± 0\.[0-9]{4} \(n = 3\) ' "$scratch/out"
check "its files are whole" bash -c "cd '$all' && sha256sum --quiet -c SHA256SUMS && sha256sum --quiet -c split.csv.sha256"
"$forked" evaluate "$all" --out "$scratch/test.csv" --json >"$scratch/test.json" 2>"$scratch/err"
check "the networks compute what the members' tables say" python3 "$checks" same "$scratch/test.csv" "$all/predictions_test.csv"
check "the mean of the members' logits, and their spread" python3 "$checks" mean "$all/predictions_test.csv" "$cv"/f*/predictions_test.csv
check "each image of validation has the score of its own fold" python3 "$checks" out_of_fold "$all/predictions_val.csv" "$cv"/f*/predictions_val.csv
check "results.json has its AUROC, and evaluate the same" look '
assert abs(a["evaluations"]["test"]["mean_auroc"] - b["mean_auroc"]) < 1e-12
assert [m["run"] for m in a["ensemble"]["members"]] == ["f1", "f2", "f3"] and len(a["ensemble"]["spreads"]) == 14
' "$all/results.json" "$scratch/test.json"
check "who was trained on an image counts as trained on it" python3 "$checks" split "$all/split.csv" "$cv"/f*/split.csv
mpi 2 evaluate "$all" --out "$scratch/two.csv" >/dev/null 2>&1
check "on two ranks the same bytes" cmp "$scratch/test.csv" "$scratch/two.csv"
"$program" predict "$all" "$phantom/images" --out "$scratch/p.csv" 2>"$scratch/err"
check "predict has its probabilities and spreads" python3 "$checks" predicted "$scratch/p.csv" "$scratch/test.csv"
check "and its thresholds, chosen out of fold" grep -q 'chosen on [0-9]* images of validation' "$scratch/err"
"$program" export "$all" --out "$scratch/onnx" 2>/dev/null
"$program" predict "$all" "$phantom/images/00000001_000.png" --heatmaps "$scratch/maps" --heatmap-findings Mass --heatmap-method cam >/dev/null 2>&1
check "heat maps are drawn of the mean" [ "$(find "$scratch/maps" -name '*Mass.png' | wc -l)" = 1 ]
check "its ONNX file has the members, and one output" python3 "$checks" onnx "$scratch/onnx/model.onnx" 3
check "the page has its members" grep -q 'id="members"' "$all/report.html"
"$program" status "$cv" >"$scratch/status"
check "it says what thresholds of folds are worth" grep -q 'chosen on scores of single members' "$scratch/err"
check "and of the ensemble itself its members and scores" bash -c "'$program' status '$all' | grep -A9 'f1, f2, f3' | grep -q 'final AUROC, test'"
check "status takes folds for one training" grep -qE '^none but seed and fold +3 ' "$scratch/status"

# What it refuses.
refused 3 "are of patients that the model was trained on" evaluate "$all" --set data.train_list= --set data.test_list="$phantom/train_val_list.txt"
refused 2 "the members of this ensemble have several" evaluate "$all" --split val
refused 2 "two or more, or a folder of them" ensemble "$cv/f1" --out "$scratch/one"
refused 4 "is there already" ensemble "$cv" --out "$all"
refused 4 "is an ensemble. Hint: name finished runs" ensemble "$cv/f1" "$all" --out "$scratch/no"
for fold in 1 2; do
  "$program" train "$small" --out "$scratch/means/f$fold" --set data.fold=$fold/2 --set eval.splits=[val,test] --set train.max_steps=2 \
    --set eval.by=patient --set eval.combine=mean 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
done
check "means of patients' images: also" ensemble "$scratch/means" --out "$scratch/of-means"
check "each row of its tables is of a patient" eval '[ "$(sed 1d "$scratch/of-means/predictions_test.csv" | sed "s/.*,//" | sort -u)" = patient ]'
mkdir "$scratch/by-patient"; cp -r "$cv/f1" "$cv/f2" "$scratch/by-patient"
sed -i 's/^  by: image/  by: patient/' "$scratch"/by-patient/*/config.yaml
refused 2 "do not tell the highest score of the ensemble" ensemble "$scratch/by-patient" --out "$scratch/no"
sed -i 's/^  by: patient/  by: image/' "$scratch/by-patient/f1/config.yaml"
refused 2 "f2 was scored with eval.crops=1 eval.by=patient eval.combine=max, and" ensemble "$scratch/by-patient" --out "$scratch/no"
refused 2 "is an ensemble of 3 networks" export "$all" --out "$scratch/no" --weights torchvision
cp -r "$cv" "$scratch/other"
sed -i '2s/,[^,]*$/,0.5/' "$scratch/other/f2/predictions_val.csv"
refused 3 "is not the table that the run wrote" ensemble "$scratch/other" --out "$scratch/no"
rm -r "$scratch/other/f2"
"$program" train "$small" --out "$scratch/other/f2" --set data.findings=[Mass,Nodule,Effusion] --set train.max_steps=1 2>/dev/null
refused 4 "its list of findings is" ensemble "$scratch/other" --out "$scratch/no"
cp -r "$cv/f2" "$scratch/died" && sed -i '/"event":"end"/d' "$scratch/died/metrics.jsonl"
refused 4 "has not finished (died)" ensemble "$cv/f1" "$scratch/died" --out "$scratch/no"
for key in a b; do
  "$program" train "$small" --out "$scratch/key-$key" --set privacy.ids=pseudonym --set privacy.key="$scratch/$key.key" --set train.max_steps=1 --set eval.splits=[] 2>"$scratch/log"
done
refused 3 "by pseudonyms of different keys" ensemble "$scratch/key-a" "$scratch/key-b" --out "$scratch/no"
refused 4 "is an ensemble, which no training goes on with" train "$small" --out "$all" --resume auto
for members in null '["a"]' '{}' '[]'; do
  python3 "$checks" damage "$all/model.safetensors" "$scratch/damaged.safetensors" "$members"
  refused 4 "$scratch/damaged.safetensors: " predict "$scratch/damaged.safetensors" "$phantom/images/00000001_000.png"
done
mkdir "$scratch/swapped" && cp "$all"/{config.yaml,SHA256SUMS} "$scratch/swapped" && cp "$(weights "$cv/f1")" "$scratch/swapped"
refused 4 "is not the file that SHA256SUMS names" evaluate "$scratch/swapped"
check "it is as private as a run" [ "$(stat -c %a "$all")" = "$(stat -c %a "$cv/f1")" ]
check "what is refused leaves nothing" [ ! -e "$scratch/no" ]
cp -r "$all" "$cv/all"
check "an ensemble among its members is left out" ensemble "$cv" --out "$scratch/again"
check "and the others give the same" cmp "$all/predictions_test.csv" "$scratch/again/predictions_test.csv"
finish
