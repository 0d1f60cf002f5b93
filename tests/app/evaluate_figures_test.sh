#!/usr/bin/env bash
# Intervals, operating points and the table of figures that evaluate gives.
source tests/lib.sh
check "a run" "$program" train "$small" --out "$scratch/run" --set train.max_steps=2 --set eval.splits=[val,test] --set data.val_fraction=0.3 2>"$scratch/log"
val=$scratch/run/predictions_val.csv
evaluate() { "$program" evaluate "$scratch/run" "$@" 2>"$scratch/err"; }
evaluate --choose-on "$val" --sensitivity 0.8 --threshold 0.4 --prevalence 0.01 --figures "$scratch/f.csv" --json >"$scratch/e.json"
check "figures, intervals and points agree with each other" python3 - "$scratch/e.json" "$scratch/f.csv" "$val" "$scratch/run/predictions_test.csv" <<'PY'
import csv, json, sys
result = json.load(open(sys.argv[1]))
lines = list(csv.DictReader(open(sys.argv[2])))
of = {(l["finding"], l["figure"], l["rule"]): l for l in lines}
assert len(of) == len(lines)
for finding, f in result["findings"].items():
    assert f["few_positives"] == (f["positives"] < 10)
    line = of[finding, "auroc", ""]
    assert (float(line["value"]) if line["value"] else None) == f["auroc"] == result["auroc"][finding]
    if f["auroc"] is not None:
        assert f["auroc_interval"] == [float(line["low"]), float(line["high"])]
assert result["mean_auroc_interval"][0] < result["mean_auroc"] < result["mean_auroc_interval"][1]
assert result["intervals"]["by"] == "patient" and result["intervals"]["resamples"] == 10000

points = {(p["finding"], p["rule"]): p for p in result["operating_points"]}
assert len(points) == 4 * 14
def at(path, finding, threshold):
    called, missed = 0, 0
    for row in csv.DictReader(open(path)):
        if row["label:" + finding] == "1":
            if float(row["prob:" + finding]) >= threshold: called += 1
            else: missed += 1
    return called, missed
seen = 0
for (finding, rule), p in points.items():
    if p["threshold"] is None:
        continue
    c = p["confusion"]
    assert (c["true_positives"], c["false_negatives"]) == at(sys.argv[4], finding, p["threshold"])
    if rule == "sensitivity 0.8":
        called, missed = at(sys.argv[3], finding, p["threshold"])
        assert called / (called + missed) >= 0.8
        seen += 1
    assert p["at_prevalence"]["prevalence"] == 0.01
assert seen > 3
PY
evaluate --choose-on "$val" --prevalence 0.01 >"$scratch/text"
check "the text has intervals" grep -q "95 % by patient" "$scratch/text"
check "and points" grep -q "^Operating points" "$scratch/text"
check "and says what is rough" grep -q "fewer than ten positives" "$scratch/text"
check "without patients images are drawn" bash -c "'$program' evaluate --predictions '$val' | grep -q '95 % by image'"
test=$scratch/run/predictions_test.csv
sed '2,$s/,0\.[0-9]/,0.5/g' "$test" >"$scratch/other.csv"
"$program" evaluate --predictions "$test" --against "$scratch/other.csv" --manifest "$phantom/Data_Entry_2017.csv" --json >"$scratch/c.json"
check "a comparison is between the two tables" python3 - "$scratch/c.json" <<'PY'
import json, sys
result = json.load(open(sys.argv[1]))
c = result["comparison"]
assert c["images"] == result["images"] and c["only_one"] == 0
for finding, f in c["findings"].items():
    assert f["auroc"] == result["auroc"][finding]
    if f["auroc"] is not None:
        assert f["difference"] == f["auroc"] - f["auroc_against"] and f["interval"][0] <= f["difference"] <= f["interval"][1]
assert 0 < c["mean_p"] <= 1 and c["mean_interval"][0] <= c["mean_difference"] <= c["mean_interval"][1]
PY
check "of a run too, as text" bash -c "'$program' evaluate '$scratch/run' --against '$scratch/other.csv' 2>/dev/null | grep -q '^Against .*other.csv, .* images$'"
refused 3 "no image is in both tables" evaluate "$scratch/run" --against "$val"
refused 3 "of the scored images are also in the table that thresholds are chosen on" evaluate --predictions "$val" --choose-on "$val"
refused 4 "/nowhere/f.csv" evaluate "$scratch/run" --figures /nowhere/f.csv
refused 2 "--choose-on" evaluate "$scratch/run" --sensitivity 0.8
refused 2 "--prevalence" evaluate "$scratch/run" --prevalence 2
refused 2 "--threshold" evaluate --predictions "$val" --threshold nan
refused 2 "--prevalence" evaluate --predictions "$val" --prevalence nan

# What the command reads is not replaced by what it writes.
cp "$val" "$scratch/kept.csv"
refused 2 "would be replaced" evaluate --predictions "$scratch/kept.csv" --figures "$scratch/./kept.csv"
refused 2 "would be replaced" evaluate --predictions "$test" --choose-on "$scratch/kept.csv" --figures "$scratch/kept.csv"
refused 2 "would be replaced" evaluate "$scratch/run" --out "$scratch/both.csv" --figures "$scratch/both.csv"
check "it is as it was" cmp "$val" "$scratch/kept.csv"

# Labels in a table of predictions.
printf 'image,label:Edema,prob:Edema\na,1,0.9\nb,-1,0.8\nc,0,0.1\nd,nan,0.95\n' >"$scratch/unsure.csv"
check "uncertain is neither positive nor negative" bash -c "'$program' evaluate --predictions '$scratch/unsure.csv' --json | python3 -c '
import json, sys
assert json.load(sys.stdin)[\"auroc\"][\"Edema\"] == 1'"
printf 'image,label:Edema,prob:Edema\na,1,0.9\nb,2,0.8\nc,0,0.1\n' >"$scratch/two.csv"
refused 3 "'2' in column label:Edema is not 1, 0, -1 or blank" evaluate --predictions "$scratch/two.csv"
finish
