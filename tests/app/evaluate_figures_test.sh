#!/usr/bin/env bash
# Intervals, operating points and the table of figures that evaluate gives.
source tests/lib.sh
checks=$source_folder/tests/app/evaluate_checks.py
fork_starts
shared_run scored "$scratch/run" || exit 1
check "one interval of validation: in the line of its epoch and at the end" look '
best = [e for e in a if e["event"] == "val" and e["best"] == "yes"][-1]
end, = [e for e in a if e["event"] == "final" and e["split"] == "val"]
assert all(best[k] == end[k] for k in ("mean_auroc", "mean_auroc_low", "mean_auroc_high"))' "$scratch/run/metrics.jsonl"
val=$scratch/run/predictions_val.csv
check "a run with weights" "$program" train "$small" --out "$scratch/weighted" --set train.max_steps=2 --set eval.splits=[test] --set train.class_weights=pos_weight --set data.allow_patient_leak=true 2>"$scratch/log"
check "its final loss is as unweighted as evaluate's" python3 "$checks" unweighted_loss "$scratch/weighted/results.json" <("$program" evaluate "$scratch/weighted" --json 2>/dev/null)
evaluate() { "$forked" evaluate "$scratch/run" "$@" 2>"$scratch/err"; }
evaluate --choose-on "$val" --set eval.sensitivity=0.8 --threshold 0.4 --prevalence 0.01 --figures "$scratch/f.csv" --json >"$scratch/e.json"
check "figures, intervals and points agree with each other" python3 "$checks" figures "$scratch/e.json" "$scratch/f.csv" "$val" "$scratch/run/predictions_test.csv"
evaluate --choose-on "$val" --prevalence 0.01 >"$scratch/text"
check "the text has intervals" grep -q "95 % by patient" "$scratch/text"
check "and points" grep -q "^Operating points" "$scratch/text"
check "and why an interval is missing" grep -q "no interval  .*fewer than five patients" "$scratch/text"
check "and says what is rough" grep -q "fewer than ten positives" "$scratch/text"
check "without patients images are drawn" bash -c "'$program' evaluate --predictions '$val' | grep -q '95 % by image'"
test=$scratch/run/predictions_test.csv
sed '2,$s/,0\.[0-9]/,0.5/g' "$test" >"$scratch/other.csv"
"$program" evaluate --predictions "$test" --against "$scratch/other.csv" --manifest "$phantom/Data_Entry_2017.csv" --json >"$scratch/c.json"
check "a comparison is between the two tables" python3 "$checks" comparison "$scratch/c.json"
check "of a run too, as text" bash -c "'$program' evaluate '$scratch/run' --against '$scratch/other.csv' 2>/dev/null | grep -q '^Against .*other.csv, .* images$'"
refused 3 "no image is in both tables" evaluate "$scratch/run" --against "$val"
refused 3 "of the scored images are also in the table that thresholds are chosen on" evaluate --predictions "$val" --choose-on "$val"
refused 4 "/nowhere/f.csv" evaluate "$scratch/run" --figures /nowhere/f.csv
refused 2 "--prevalence" evaluate "$scratch/run" --prevalence 2
refused 2 "chosen with --choose-on" evaluate "$scratch/run" --set eval.sensitivity=0.9
refused 2 "--by age: given twice" evaluate "$scratch/run" --by age --by age:18
refused 2 "--threshold" evaluate --predictions "$val" --threshold nan
refused 2 "--prevalence" evaluate --predictions "$val" --prevalence nan

# Parts of the images, and the bootstrap's own options.
few=(--resamples 300 --seed 4)
evaluate "${few[@]}" --by sex --by age:30,60 --by "follow-up #" --figures "$scratch/by.csv" --json >"$scratch/by.json"
check "subgroups are those of the table" python3 "$checks" subgroups "$scratch" "$phantom/Data_Entry_2017.csv"
evaluate "${few[@]}" --by sex --ranks 2 --set data.workers=3 --json >"$scratch/by2.json"
evaluate "${few[@]}" --by sex --json >"$scratch/by1.json"
check "subgroups are the same on two ranks and more loader threads" cmp "$scratch/by1.json" "$scratch/by2.json"
evaluate "${few[@]}" --by sex >"$scratch/text"
check "the text has gaps" grep -q "^By sex; gap: AUROC minus that of all others" "$scratch/text"
evaluate --resamples 300 --seed 5 --json >"$scratch/seed5.json"
check "another seed, another interval" look 'assert a["mean_auroc"] == b["mean_auroc"] and a["findings"] != b["findings"]' "$scratch"/{by,seed5}.json
refused 3 "has no column 'ward'. Hint: it has Image Index" evaluate "$scratch/run" --by ward
# Labels of the table against those of a manifest: of another release, or of other rows.
python3 "$checks" rotate_labels "$test" "$scratch/rotated.csv"
warns() { "$program" evaluate --predictions "$1" --manifest "$phantom/Data_Entry_2017.csv" --resamples 10 2>&1 >/dev/null | grep -c "labels of its own differ from"; }
check "labels that are not the manifest's are counted in a warning" [ "$(warns "$scratch/rotated.csv")" = 1 ]
check "those that are, not" [ "$(warns "$test")" = 0 ]
refused 2 "Hint: --manifest TABLE" evaluate --predictions "$test" --by sex
refused 2 "--by age:60,30: the years do not ascend" evaluate "$scratch/run" --by age:60,30
refused 2 "--by age:old: 'old' is no number of years" evaluate "$scratch/run" --by age:old
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
check "names with commas and quotes stay one field" python3 "$checks" names "$scratch/names.f.csv"

# What the command reads is not replaced by what it writes.
cp "$val" "$scratch/kept.csv"
refused 2 "would be replaced" evaluate --predictions "$scratch/kept.csv" --figures "$scratch/./kept.csv"
refused 2 "would be replaced" evaluate --predictions "$test" --choose-on "$scratch/kept.csv" --figures "$scratch/kept.csv"
refused 2 "would be replaced" evaluate "$scratch/run" --out "$scratch/both.csv" --figures "$scratch/both.csv"
check "it is as it was" cmp "$val" "$scratch/kept.csv"

# Labels in a table of predictions.
printf 'image,label:Edema,prob:Edema\na,1,0.9\nb,-1,0.8\nc,0,0.1\nd,nan,0.95\n' >"$scratch/unsure.csv"
check "uncertain is neither positive nor negative" look 'assert a["auroc"]["Edema"] == 1' <("$program" evaluate --predictions "$scratch/unsure.csv" --json)
printf 'image,label:Edema,prob:Edema\na,1,0.9\nb,2,0.8\nc,0,0.1\n' >"$scratch/two.csv"
refused 3 "'2' in column label:Edema is not 1, 0, -1 or blank" evaluate --predictions "$scratch/two.csv"
finish
