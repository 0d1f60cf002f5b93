#!/usr/bin/env bash
# Labels, heads and tables by name of finding: scoring a network on other tables, handing a model on, starting from another's weights.
source tests/lib.sh
one=(--set train.max_steps=1 --set eval.splits=[] --set data.val_fraction=0)
fork_starts
shared_run plain "$scratch/run" || exit 1
evaluate() { "$forked" evaluate "$@" --json 2>"$scratch/log"; }

# The test rows as a data set of another hospital: a table and images, no lists.
mkdir -p "$scratch/other"
{ head -n 1 "$phantom/Data_Entry_2017.csv"; grep -F -f "$phantom/test_list.txt" "$phantom/Data_Entry_2017.csv"; } >"$scratch/other.csv"
while read -r name; do ln -s "$phantom/images/$name" "$scratch/other/"; done < <(sed 's/\r$//' "$phantom/test_list.txt")
here=$(evaluate "$scratch/run")
there=$(evaluate "$scratch/run" --manifest "$scratch/other.csv" --images "$scratch/other")
check "a table of its own is scored without lists" [ -n "$there" ]
check "under its own name" grep -q '"split":{"name":"other.csv"' <<<"$there"
check "with the figures of the same rows in a split" [ "${here%%,\"split\"*}" = "${there%%,\"split\"*}" ]
check "and text names the table" bash -c "'$program' evaluate '$scratch/run' --manifest '$scratch/other.csv' --images '$scratch/other' 2>/dev/null | grep -q '^AUROC on other.csv, '"
"$program" predict "$scratch/run" "$scratch/other" --out "$scratch/predicted.csv" 2>"$scratch/log"
check "predict's table is scored, though it has paths" look 'assert a["mean_auroc"] == b["mean_auroc"]' \
  <(evaluate --predictions "$scratch/predicted.csv" --manifest "$scratch/other.csv") <(echo "$there")
check "without --images the folder that is searched is said" bash -c "'$program' evaluate '$scratch/run' --manifest '$scratch/other.csv' 2>&1 | grep -q 'images are looked for in .*--images names others'"
check "a split needs no training images" [ -n "$(evaluate "$scratch/run" --set data.manifest.path="$scratch/other.csv" --set data.images=["$scratch/other"] --set data.train_list= --set data.val_list= --set data.val_fraction=0)" ]

# Several tables of another vocabulary, in one go.
awk -F, 'NR > 1 {print $1 "," $4 "," ($2 ~ /Effusion/) "," (NR % 5 ? ($2 ~ /Infiltration/) : -1) "," ($2 ~ /Mass/)}' "$scratch/other.csv" >"$scratch/rows"
columns="image,patient,Pleural Effusion,infiltration,Lung Lesion"
{ echo "$columns"; head -n 12 "$scratch/rows"; } >"$scratch/a.csv"
{ echo "$columns"; tail -n +13 "$scratch/rows"; } >"$scratch/b.csv"
both=(--manifest "$scratch/a.csv" --manifest "$scratch/b.csv" --images "$scratch/other" --set data.manifest.format=csv --set data.manifest.columns.patient=patient)
first=$(evaluate "$scratch/run" "${both[@]}" --out "$scratch/p.csv")
check "two tables are one test set" grep -q "\"images\":$(wc -l <"$scratch/rows"),.*\"name\":\"a.csv, b.csv\"" <<<"$first"
check "findings that both know are scored" grep -q '"auroc":{"Effusion":[0-9.e-]*,"Infiltration":[0-9.e-]*}' <<<"$first"
check "the network's other findings are named" grep -q "has no such finding: .*Hernia" "$scratch/log"
check "and the table's" grep -q "the network does not know it: Lung Lesion" "$scratch/log"
check "predictions are written for all rows" [ "$(wc -l <"$scratch/p.csv")" = $(($(wc -l <"$scratch/rows") + 1)) ]
again=$("$program" evaluate --predictions "$scratch/p.csv" "${both[@]:0:4}" "${both[@]:6}" --json 2>"$scratch/log")
mean() { grep -o '"mean_auroc":[0-9.]*' <<<"$1"; }
check "which score again" [ "$(mean "$again")" = "$(mean "$first")" ]
check "and name what has no scores" grep -q "has no such column: Lung Lesion" "$scratch/log"
for policy in one zero; do
  check "data.uncertain=$policy changes no score" [ "$first" = "$(evaluate "$scratch/run" "${both[@]}" --set data.uncertain=$policy)" ]
done
check "eval.uncertain does" [ "$first" != "$(evaluate "$scratch/run" "${both[@]}" --set eval.uncertain=one)" ]
refused 2 "eval.findings: no finding 'Efusion'" evaluate "$scratch/run" --set eval.findings=[Efusion]
check "eval.findings meet by name" grep -q '"auroc":{"Effusion":[^,]*},' <<<"$(evaluate "$scratch/run" --set "eval.findings=[pleural effusion]")"
check "eval.findings chooses" grep -q '"auroc":{"Effusion":[^,]*},' <<<"$(evaluate "$scratch/run" --set eval.findings=[Effusion])"
printf 'image,patient,Fracture\nx.png,1,0\n' >"$scratch/none.csv"
refused 3 "has no finding that is scored" evaluate "$scratch/run" --manifest "$scratch/none.csv" --images "$scratch/other" --set data.manifest.format=csv

named=(--set "data.manifest.columns.findings=[Pleural Effusion, Fracture]")
check "a column that the config names may be absent" grep -q '"auroc":{"Effusion":[0-9.e-]*}' <<<"$(evaluate "$scratch/run" "${both[@]}" "${named[@]}")"
check "two ranks score alike" [ "$there" = "$(evaluate "$scratch/run" --manifest "$scratch/other.csv" --images "$scratch/other" --ranks 2)" ]
check "a batch of padding is said" eval 'evaluate "$scratch/run" --set eval.batch=500 >/dev/null && grep -q "the others are padding.*Hint: eval.batch=" "$scratch/log"'
refused 4 "/nowhere/p.csv" evaluate "$scratch/run" --out /nowhere/p.csv
refused 4 "$scratch/other: Is a directory" evaluate "$scratch/run" --out "$scratch/other"
refused 4 "a.csv: Not a directory" evaluate "$scratch/run" --out "$scratch/a.csv/p.csv"

# A model that is handed on.
cp "$(weights "$scratch/run")" "$scratch/handed_on.safetensors"
check "a model file alone scores alike" [ "$there" = "$(evaluate "$scratch/handed_on.safetensors" --manifest "$scratch/other.csv" --images "$scratch/other" --set eval.batch=8)" ]
check "and names no place it was made in" bash -c "! grep -aq '$CHEXNET_BUILD\|$scratch\|/tmp/tmp' '$scratch/handed_on.safetensors'"
refused 2 "Hint: --manifest TABLE --images FOLDER" evaluate "$scratch/handed_on.safetensors"
rm "$scratch/run/checkpoints/last/optimizer.safetensors"
check "a checkpoint without its optimizer scores" [ "$here" = "$(evaluate "$scratch/run/checkpoints/last")" ]
refused 4 "none of the checkpoints here (1) is whole" train "$small" --out "$scratch/run" "${one[@]}" --resume yes
head -c 10000 "$scratch/handed_on.safetensors" >"$scratch/cut.safetensors"
refused 4 "cut.safetensors: " evaluate "$scratch/cut.safetensors" --manifest "$scratch/other.csv" --images "$scratch/other"
header='{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
{ printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0"; printf '%s\0\0\0\0' "$header"; } >"$scratch/foreign.safetensors"
refused 4 "is no model of this program" evaluate "$scratch/foreign.safetensors" --manifest "$scratch/other.csv" --images "$scratch/other"

# Another's weights, and a table that tells nothing of patients.
csv=(--set data.manifest.format=csv --set data.manifest.path="$scratch/a.csv" --set "data.manifest.columns.findings=[Pleural Effusion, Lung Lesion]" --set data.images=["$scratch/other"] --set data.train_list= --set data.test_list=)
check "a start from another's weights" "$program" train "$small" --out "$scratch/next" "${one[@]}" "${csv[@]}" --set model.weights="$scratch/handed_on.safetensors" 2>"$scratch/log"
check "takes the classifier's rows by name" grep -q "classifier taken over by name: Pleural Effusion$" "$scratch/log"
check "and says what starts afresh" grep -q "started afresh: Lung Lesion; of the file, not wanted: Atelectasis" "$scratch/log"
check "and says that patients are unknown" grep -q "patients in two splits *unknown: no patient column" "$scratch/log"
sed -i 's/,[01]$/,0/' "$scratch/a.csv"
check "a start without positives" "$program" train "$small" --out "$scratch/sided" "${one[@]}" "${csv[@]}" 2>"$scratch/log"
check "warns of them" grep -q "\[labels\] train: no positive of .*Lung Lesion" "$scratch/log"

# inspect ends with what it found.
rc=0; "$program" inspect "$small" >"$scratch/out" 2>/dev/null || rc=$?
check "inspect of a clean set ends with 0" [ "$rc" = 0 ]
rc=0; "$program" inspect "$small" "${csv[@]}" --set data.images=["$source_folder/docs"] >"$scratch/out" 2>/dev/null || rc=$?
check "with images missing by 3" [ "$rc" = 3 ]
cp "$scratch/other/$(head -n 1 "$scratch/rows" | cut -d, -f1)" "$scratch/twin.png"
{ cat "$scratch/a.csv"; echo "twin.png,1,0,0,0"; } >"$scratch/twins.csv"
"$program" inspect "$small" "${csv[@]}" --set data.manifest.path="$scratch/twins.csv" --set data.images=["$scratch/other","$scratch/twin.png"] --set data.val_fraction=0 >"$scratch/out" 2>/dev/null
check "says that a picture appears twice, and that patients are unknown" grep -q "the same picture appears twice: 1; whether a patient is in two splits is unknown" "$scratch/out"

# What a table or a config may not say.
refused 2 "data.findings: 'Edema' appears twice" train "$small" --out "$scratch/no" --set data.findings=[Edema,Edema]
refused 2 "data.findings: $phantom/Data_Entry_2017.csv has no finding 'Efusion'. Hint: nearest are 'Effusion'" train "$small" --out "$scratch/no" --set data.findings=[Efusion]
refused 2 "does not know 'Efusion'. Hint: nearest are 'Effusion'" evaluate "$scratch/run" --set data.findings=[Efusion]
refused 2 "eval.findings chooses which are scored" evaluate "$scratch/run" --set data.findings=[Effusion]
refused 2 "data.uncertain: no finding 'Edma'" train "$small" --out "$scratch/no" --set data.uncertain=[Edma=one]
refused 2 "train.warmup_epochs: not less than train.epochs" train "$small" --out "$scratch/no" --set train.warmup_epochs=100
printf 'train: {lr: 1}\n---\ntrain: {lr: 2}\n' >"$scratch/second.yaml"
refused 2 "second.yaml:2: a second document" train "$scratch/second.yaml"
{ cat "$scratch/b.csv"; printf 'M\374ller.png,1,0,0,0\n'; } >"$scratch/latin1.csv"
refused 3 "latin1.csv:$(wc -l <"$scratch/latin1.csv"): is not UTF-8" evaluate "$scratch/handed_on.safetensors" --manifest "$scratch/latin1.csv" --images "$scratch/other" --set data.manifest.format=csv
refused 3 "is also in" evaluate "$scratch/handed_on.safetensors" --manifest "$scratch/b.csv" --manifest "$scratch/b.csv" --images "$scratch/other" --set data.manifest.format=csv --set data.manifest.columns.patient=patient
printf 'Path,Sex,Age,Frontal/Lateral,AP/PA,Edema\npatients/patient_data/x.jpg,F,5,Frontal,AP,1\n' >"$scratch/chexpert.csv"
refused 3 "chexpert.csv:2: no folder 'patient<number>'" evaluate "$scratch/handed_on.safetensors" --manifest "$scratch/chexpert.csv" --images "$scratch/other" --set data.manifest.format=chexpert

# Of object stores only S3's are known; weights and runs must be in a file system.
refused 2 "is in an object store" train "$small" --out gs://bucket/run
refused 2 "is in an object store" train "$small" --set run.dir=gs://bucket/run
refused 2 "is in an object store" train "$small" --set data.test_list=gs://bucket/test.txt
refused 2 "is in an object store" train "$small" --set model.weights=s3://bucket/w.safetensors
refused 2 "is in an object store" pack "$small" --out gs://bucket/set.pack
refused 2 "is in an object store" evaluate "$scratch/run" --manifest gs://bucket/t.csv
refused 2 "is in an object store" evaluate "$scratch/run" --out gs://bucket/p.csv
elsewhere="a run works in a file system. Hint: a folder, and run.after_checkpoint: COMMAND"
refused 2 "$elsewhere" train "$small" --out s3://bucket/run
refused 2 "$elsewhere" train "$small" --set run.dir=s3://bucket/run
refused 2 "$elsewhere" submit --scheduler slurm "$small" --out s3://bucket/run --dry-run
refused 2 "must be in a file system" status s3://bucket/run
refused 2 "must be in a file system" report s3://bucket/run
refused 2 "runs and checkpoints are read from a file system" evaluate s3://bucket/run
refused 2 "only a pack is written there" pack "$small" --out s3://bucket/records --format tfrecord

finish
