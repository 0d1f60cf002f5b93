#!/usr/bin/env bash
# "Is 0.12 positive?": thresholds and calibration that a training run keeps in its model file, what predict and evaluate
# make of them, and what they refuse.
source tests/lib.sh
checks=$source_folder/tests/app/evaluate_checks.py
fork_starts
shared_run scored "$scratch/run" || exit 1
run=$scratch/run model=$scratch/model.safetensors
mpi 2 train "$small" --out "$run" --set train.max_steps=15 --set data.val_fraction=0.3 --set eval.sensitivity=0.8 --resume yes >"$scratch/resumed" 2>&1
check "a checkpoint with them is whole: a resume goes on from it" bash -c "grep -q 'resumed from checkpoint step-00000014' '$scratch/resumed' && ! grep -q 'is broken' '$scratch/resumed'"
cp "$(weights "$run")" "$model"
metadata() { python3 "$checks" print_rules "$@"; }
metadata "$model" >"$scratch/rules.json"
metadata "$run/checkpoints/best/model.safetensors" >/dev/null; check "the best checkpoint has some too" [ $? = 0 ]

# evaluate: thresholds of validation, applied to test; those that --choose-on chooses there are the same.
evaluate() { "$forked" evaluate "$@" 2>"$scratch/err"; }
last=$run/checkpoints/last
evaluate "$last" --split val --out "$scratch/val.csv" --json >"$scratch/val.json"
check "thresholds are not applied to the images they were chosen on" grep -q "were chosen on these very images" "$scratch/err"
evaluate "$last" --split test --json --figures "$scratch/own.csv" >"$scratch/own.json"
evaluate "$last" --split test --json --figures "$scratch/chosen.csv" --choose-on "$scratch/val.csv" >"$scratch/chosen.json"
check "a table that may be another model's is warned of" grep -q "val.csv is none of the tables that the model's run wrote" "$scratch/err"
evaluate "$last" --split train >/dev/null; check "figures of training images are called too good" grep -q "figures of them are too good" "$scratch/err"
mv "$run/results.json" "$scratch/results.json"; echo '{' >"$run/results.json"
evaluate "$last" --split test --json --figures "$scratch/own.csv" >/dev/null; check "a damaged results.json stops no scoring" [ $? = 0 ]
check "and is warned of" grep -q "^warning: .*$run/results.json:" "$scratch/err"
mv "$scratch/results.json" "$run/results.json"
check "the model's thresholds are those of its validation" cmp "$scratch/own.csv" "$scratch/chosen.csv"
check "figures agree with the rules" python3 "$checks" rules "$scratch"
evaluate "$last" >"$scratch/text"
check "the text says where thresholds are from" grep -q "thresholds chosen on validation by the model" "$scratch/text"
threshold=$(look 'print(*(t["threshold"] for f in a["findings"] if f["finding"] == "Mass" for t in f["thresholds"] if t["rule"] == "youden"))' "$scratch/rules.json")
evaluate "$last" --json >"$scratch/all.json"
check "JSON has a threshold with all its digits" grep -qF -- "$threshold" "$scratch/all.json"
check "the text says that it rounds" grep -q "thresholds are rounded: --json and --figures have all digits" "$scratch/text"
check "and calibration" grep -q "^Calibration, fitted on validation" "$scratch/text"

# predict: from the model file alone.
"$program" predict "$model" "$phantom/images" --out "$scratch/p.csv" --json >"$scratch/p.json" 2>"$scratch/err"
check "yes is a probability of at least the threshold" python3 "$checks" predictions "$scratch"
"$program" predict "$model" "$phantom/images" --rule sensitivity --calibration isotonic --json >"$scratch/s.json" 2>"$scratch/err"
check "beside rows of JSON the log says which thresholds are rough" grep -q "^rough thresholds, chosen on fewer than ten positives: " "$scratch/err"
check "another rule, another calibration" grep -q '"operating_point":{"rule":"sensitivity","calibration":"isotonic"' "$scratch/s.json"
"$program" predict "$model" "$phantom/images" --ranks 2 --set data.workers=3 --set eval.batch=8 --out "$scratch/two.csv" 2>"$scratch/err"
check "on two ranks and more threads the same" cmp "$scratch/p.csv" "$scratch/two.csv"
check "the text marks what is positive" bash -c "'$program' predict '$model' '$phantom/images' 2>/dev/null | grep -q '^\* = positive: at least the finding'"
refused 2 "--rule" predict "$model" "$phantom/images" --rule f1

# Models that were changed.
changed() { python3 "$checks" change_model "$model" "$scratch/changed.safetensors" "$1"; }
for change in weights names input; do
  changed $change
  refused 4 "were chosen for a model with other weights, names or preprocessing" predict "$scratch/changed.safetensors" "$phantom/images"
done
refused 4 "were chosen for a model with other weights" evaluate "$scratch/changed.safetensors" --manifest "$phantom/Data_Entry_2017.csv" --images "$phantom/images"
changed threshold
refused 4 "are not those that were chosen for it" predict "$scratch/changed.safetensors" "$phantom/images"
refused 4 "are not those that were chosen for it" export "$scratch/changed.safetensors" --out "$scratch/exported"
changed without_sum
"$program" predict "$scratch/changed.safetensors" "$phantom/images" --out "$scratch/without_sum.csv" 2>"$scratch/err"
check "thresholds whose sum is missing are used" cmp "$scratch/without_sum.csv" "$scratch/p.csv"
check "with a warning" grep -q "its thresholds and calibration have no SHA-256" "$scratch/err"
changed order
refused 4 "its outputs in this order" predict "$scratch/changed.safetensors" "$phantom/images"

# Data that figures are not to be taken from.
refused 3 "images of val are of patients that the model was trained on" evaluate "$run" --split val --set data.split_seed=7
evaluate "$run" --split val --set data.split_seed=7 --set data.allow_patient_leak=true >/dev/null
check "what is accepted is a warning" grep -q "of patients that the model was trained on" "$scratch/err"
check "of the run's own splits nothing is said" bash -c "! '$program' evaluate '$run' --split test 2>&1 | grep -q 'trained on'"
evaluate "$run" --manifest "$phantom/Data_Entry_2017.csv" --images "$phantom/images" >/dev/null
check "and are as frequent as they were" bash -c "! grep -q 'far from as frequent' '$scratch/err'"
check "rows of a table are looked at too" grep -q "of Data_Entry_2017.csv are of patients that the model was trained on" "$scratch/err"
sed '2,$s/,PA,/,AP,/' "$phantom/Data_Entry_2017.csv" >"$scratch/release.csv"
evaluate "$run" --set data.manifest.path="$scratch/release.csv" >/dev/null
check "another release of the table is named" grep -q "release.csv is not the file that the model was trained with: labels may differ" "$scratch/err"
sed '2,$s/,[^,]*/,Hernia/' "$phantom/Data_Entry_2017.csv" >"$scratch/swapped.csv"
evaluate "$run" --manifest "$scratch/swapped.csv" --images "$phantom/images" >/dev/null
check "labels that are swapped are told by their frequency" grep -q "swapped.csv are far from as frequent as in training: .*Pneumonia 0.0 % ([0-9.]* % of training)" "$scratch/err"
mkdir "$scratch/away" && cp "$model" "$scratch/away/"
evaluate "$scratch/away/model.safetensors" --split val --set data.manifest.path="$phantom/Data_Entry_2017.csv" --set data.images=["$phantom/images"] --set data.split_seed=7 >/dev/null
check "outside of the run a foreign split is named" grep -q "cannot be told without the run's split.csv" "$scratch/err"
finish
