#!/usr/bin/env bash
# Intervals, operating points and the table of figures that evaluate gives.
source tests/lib.sh
check "a run" "$program" train "$small" --out "$scratch/run" --set train.max_steps=2 --set eval.splits=[val,test] --set data.val_fraction=0.3 2>"$scratch/log"
val=$scratch/run/predictions_val.csv
check "a run with weights" "$program" train "$small" --out "$scratch/weighted" --set train.max_steps=2 --set eval.splits=[test] --set train.loss_weights=pos_weight --set data.allow_patient_leak=true 2>"$scratch/log"
check "its final loss is as unweighted as evaluate's" python3 - "$scratch/weighted/results.json" <("$program" evaluate "$scratch/weighted" --json 2>/dev/null) <<'PY'
import json, sys
final, evaluated = (json.load(open(path)) for path in sys.argv[1:])
assert abs(final["evaluations"]["test"]["loss"] - evaluated["loss"]) < 1e-9, (final["evaluations"]["test"]["loss"], evaluated["loss"])
PY
evaluate() { "$program" evaluate "$scratch/run" "$@" 2>"$scratch/err"; }
evaluate --choose-on "$val" --sensitivity 0.8 --threshold 0.4 --prevalence 0.01 --figures "$scratch/f.csv" --json >"$scratch/e.json"
check "figures, intervals and points agree with each other" python3 - "$scratch/e.json" "$scratch/f.csv" "$val" "$scratch/run/predictions_test.csv" <<'PY'
import csv, json, sys
result = json.load(open(sys.argv[1]))
lines = list(csv.DictReader(open(sys.argv[2])))
assert len({(l["finding"], l["figure"], l["rule"], l["group"]) for l in lines}) == len(lines)
of = {(l["finding"], l["figure"], l["rule"]): l for l in lines if not l["group"]}
for finding, f in result["findings"].items():
    assert f["few_positives"] == (f["positives"] < 10)
    line = of[finding, "auroc", ""]
    assert (float(line["value"]) if line["value"] else None) == f["auroc"] == result["auroc"][finding]
    if f["auroc_interval"] is not None:
        assert f["auroc_interval"] == [float(line["low"]), float(line["high"])]
    else:
        assert not line["low"] and (f["few_patients"] or f["auroc"] in (None, 1))
    if f["few_patients"]:
        assert f["auroc_interval"] is f["auroc_interval_delong"] is f["average_precision_interval"] is None
assert sum(f["auroc_interval"] is not None for f in result["findings"].values()) > 3
# Some findings here are of fewer than five patients.
assert result["mean_auroc_interval"] is None and 0 < result["mean_auroc"] < 1
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
bins = {(l["finding"], l["rule"], l["group"]): l for l in lines if l["figure"] == "rate"}
assert len(bins) == sum(len(b) for r in result["reliability"] for b in r["bins"].values())
for r in result["reliability"]:
    mine = {group: l for (f, c, group), l in bins.items() if (f, c) == (r["finding"], r["calibration"]) and group.startswith("equal_widths ")}
    for b, line in zip(r["bins"]["equal_widths"], mine.values()):
        assert (float(line["value"]) if line["value"] else None) == b["rate"] and int(line["positives"]) == b["positives"]
        assert line["few_positives"] == str(int(b["positives"] < 10))
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
check "and why an interval is missing" grep -q "no interval, nor of a mean with these.*fewer than five patients" "$scratch/text"
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
        assert f["difference"] == f["auroc"] - f["auroc_against"]
        # None where no resample changes the figure.
        assert f["interval"] is None or f["interval"][0] <= f["difference"] <= f["interval"][1]
assert any(f["interval"] for f in c["findings"].values())
assert c["mean_interval"] is None and c["mean_p"] is None  # some are of fewer than five patients
PY
check "of a run too, as text" bash -c "'$program' evaluate '$scratch/run' --against '$scratch/other.csv' 2>/dev/null | grep -q '^Against .*other.csv, .* images$'"
refused 3 "no image is in both tables" evaluate "$scratch/run" --against "$val"
refused 3 "of the scored images are also in the table that thresholds are chosen on" evaluate --predictions "$val" --choose-on "$val"
refused 4 "/nowhere/f.csv" evaluate "$scratch/run" --figures /nowhere/f.csv
refused 2 "--choose-on" evaluate "$scratch/run" --sensitivity 0.8
refused 2 "--prevalence" evaluate "$scratch/run" --prevalence 2
refused 2 "--threshold" evaluate --predictions "$val" --threshold nan
refused 2 "--prevalence" evaluate --predictions "$val" --prevalence nan

# Parts of the images, and the bootstrap's own options.
few=(--resamples 300 --seed 4)
evaluate "${few[@]}" --by sex --by age --by "follow-up #" --age-bands 30,60 --figures "$scratch/by.csv" --json >"$scratch/by.json"
python3 - "$scratch" "$phantom/Data_Entry_2017.csv" <<'PY' && echo "ok: subgroups are those of the table" || { echo "FAILED: subgroups"; failures=$((failures + 1)); }
import csv, json, sys
result = json.load(open(sys.argv[1] + "/by.json"))
table = {r["Image Index"]: r for r in csv.DictReader(open(sys.argv[2]))}
rows = [table[r["image"]] for r in csv.DictReader(open(sys.argv[1] + "/run/predictions_test.csv"))]
assert result["intervals"]["resamples"] == 300 and result["intervals"]["seed"] == 4
by = {s["by"]: s["findings"] for s in result["subgroups"]}
assert list(by) == ["sex", "age", "follow-up #"]
def age(r):
    a = int(r["Patient Age"].rstrip("YMD"))
    return "0-29" if a < 30 else "30-59" if a < 60 else "60+"
of = {"sex": lambda r: r["Patient Gender"], "age": age, "follow-up #": lambda r: r["Follow-up #"]}
lines = {(l["finding"], l["figure"], l["group"]): l for l in csv.DictReader(open(sys.argv[1] + "/by.csv"))}
gaps = 0
for column, findings in by.items():
    assert len(findings) == 14
    for finding, f in findings.items():
        for g in f["groups"]:
            mine = [r for r in rows if of[column](r) == g["value"]]
            positives = sum(finding in r["Finding Labels"].split("|") for r in mine)
            assert (g["images"], g["positives"], g["patients"]) == (len(mine), positives, len({r["Patient ID"] for r in mine})), (g, len(mine))
            assert g["few_positives"] == (positives < 10)
            line = lines[finding, "auroc_gap", f"{column}={g['value']}"]
            assert (float(line["value"]) if line["value"] else None) == g["gap"]
            if g["gap"] is not None:
                assert g["gap_interval"] is None or g["gap_interval"][0] < g["gap_interval"][1]
                gaps += 1
        assert sum(g["images"] for g in f["groups"]) + f["unknown"] == len(rows)
assert gaps > 10
PY
evaluate "${few[@]}" --by sex --ranks 2 --set data.workers=3 --json >"$scratch/by2.json"
evaluate "${few[@]}" --by sex --json >"$scratch/by1.json"
check "subgroups are the same on two ranks and more loader threads" cmp "$scratch/by1.json" "$scratch/by2.json"
evaluate "${few[@]}" --by sex >"$scratch/text"
check "the text has gaps" grep -q "^By sex; gap: AUROC minus that of all others" "$scratch/text"
evaluate --resamples 300 --seed 5 --json >"$scratch/seed5.json"
check "another seed, another interval" python3 -c "
import json
a, b = (json.load(open('$scratch/' + f)) for f in ('by.json', 'seed5.json'))
assert a['mean_auroc'] == b['mean_auroc'] and a['findings'] != b['findings']"
refused 3 "has no column 'ward'. Hint: it has Image Index" evaluate "$scratch/run" --by ward
# Labels of the table against those of a manifest: of another release, or of other rows.
python3 - "$test" "$scratch/rotated.csv" <<'PY'
import csv, sys
rows = list(csv.reader(open(sys.argv[1], newline='')))
labels = [i for i, name in enumerate(rows[0]) if name.startswith('label:')]
shifted = rows[1:][-1:] + rows[1:][:-1]
with open(sys.argv[2], 'w', newline='') as out:
    csv.writer(out).writerows([rows[0]] + [[other[i] if i in labels else cell for i, cell in enumerate(row)] for row, other in zip(rows[1:], shifted)])
PY
warns() { "$program" evaluate --predictions "$1" --manifest "$phantom/Data_Entry_2017.csv" --resamples 10 2>&1 >/dev/null | grep -c "labels of its own differ from"; }
check "labels that are not the manifest's are counted in a warning" [ "$(warns "$scratch/rotated.csv")" = 1 ]
check "those that are, not" [ "$(warns "$test")" = 0 ]
refused 2 "Hint: --manifest TABLE" evaluate --predictions "$test" --by sex
refused 2 "the years do not ascend" evaluate "$scratch/run" --by age --age-bands 60,30
refused 2 "--resamples" evaluate "$scratch/run" --resamples 0

# A table without patients: its order says nothing. Names of findings are fields of a CSV.
awk -F, 'NR == 1 || NR % 2 == 0' "$test" >"$scratch/half.csv"
{ head -n 1 "$test"; tail -n +2 "$test" | tac; } >"$scratch/tac.csv"
for table in "$test" "$scratch/tac.csv"; do
  "$program" evaluate --predictions "$table" --choose-on "$val" --against "$scratch/half.csv" "${few[@]}" --figures "$scratch/$(basename "$table" .csv).f.csv" >/dev/null 2>&1
done
check "rows in another order give the same bytes" cmp "$scratch/predictions_test.f.csv" "$scratch/tac.f.csv"
check "with the comparison" grep -q "^Effusion,auroc_difference,,,0,,," "$scratch/tac.f.csv"
printf '%s\n' 'image,"label:Mass, ""left""","prob:Mass, ""left"""' a,1,0.9 b,0,0.8 c,0,0.1 >"$scratch/names.csv"
"$program" evaluate --predictions "$scratch/names.csv" "${few[@]}" --figures "$scratch/names.f.csv" >/dev/null 2>&1
python3 - "$scratch/names.f.csv" <<'PY' && echo "ok: names with commas and quotes stay one field" || { echo "FAILED: names"; failures=$((failures + 1)); }
import csv, sys
lines = list(csv.DictReader(open(sys.argv[1])))
assert lines[0]["finding"] == 'Mass, "left"' and lines[0]["value"] == "1" and all(None not in l and None not in l.values() for l in lines), lines[0]
PY

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
