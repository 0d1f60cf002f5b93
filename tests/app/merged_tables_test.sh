#!/usr/bin/env bash
# Data from several sources: two tables of other vocabularies in one run, rows that are left out, cuts by patient, and what a resume refuses.
source tests/lib.sh
fork_starts
T=(--set train.max_steps=1 --set eval.splits=[] --set data.train_list= --set data.test_list=)
table=$phantom/Data_Entry_2017.csv

# The first hundred rows as NIH has them, the others as a table of another hospital without Hernia.
head -n 101 "$table" >"$scratch/a.csv"
awk -F, 'NR > 101 {print $1 "," $4 "," $7 "," ($2 ~ /Effusion/) "," (($2 ~ /Mass/) ? 1 : "") "," ($2 ~ /Nodule/)}' "$table" >"$scratch/rows"
{ echo "file,mrn,view,Pleural Effusion,Mass,Lung Nodule"; cat "$scratch/rows"; } >"$scratch/b.csv"
printf 'name,finding\nLung Nodule,Nodule\n' >"$scratch/names.csv"
cat >"$scratch/two.yaml" <<YAML
data:
  manifest:
    path: [$scratch/a.csv, $scratch/b.csv]
    format: [nih, csv]
    columns: {image: file, patient: mrn, view: view}
  images: [$phantom/images]
  finding_names: $scratch/names.csv
  resize: 36
  crop: 32
  val_fraction: 0.2
  test_fraction: 0.2
  stratify: true
privacy: {ids: plain}
model: {arch: densenet121, weights: none}
train: {batch: 8, max_steps: 2, epochs: 100}
run: {log_every: 1}
eval: {batch: 8, splits: [test]}
launch: {device: cpu, threads: 1}
YAML
two=$scratch/two.yaml
check "two tables are one run" "$program" train "$two" --out "$scratch/two" 2>"$scratch/log"
check "it has the images of both" grep -q "b.csv (160 images" "$scratch/log"
check "what one table lacks is said" grep -q "b.csv has no labels of Atelectasis, .*Hernia: its images do not count" "$scratch/log"
"$program" inspect "$two" >/dev/null 2>"$scratch/inspect.log"
check "inspect says so once" [ "$(grep -c "has no labels of" "$scratch/inspect.log")" = 1 ]
check "and is aligned by name: no finding twice" grep -Eq "findings +14$" "$scratch/log"
check "all three splits are drawn" [ "$(cut -d, -f3 "$scratch/two/split.csv" | sort | uniq -c | awk '{print $2}' | xargs)" = "split test train val" ]
check "no patient is in two" [ "$(tail -n +2 "$scratch/two/split.csv" | cut -d, -f2,3 | sort -u | cut -d, -f1 | uniq -d | wc -l)" = 0 ]
check "a resume reads the lists of its config back" "$program" train "$two" --out "$scratch/two" --resume yes --set train.max_steps=3 2>"$scratch/log"
check "its model scores another table of these names" grep -q '"Nodule":' <<<"$("$program" evaluate "$scratch/two" --manifest "$scratch/b.csv" --images "$phantom/images" --set data.manifest.format=csv --json 2>"$scratch/log")"

# A resume under another choice of rows, names or folds.
again=(train "$two" --out "$scratch/two" --resume yes --set train.max_steps=4)
refused 2 "data.filter: [] -> [view=PA]" "${again[@]}" --set data.filter=[view=PA]
refused 2 'data.fold: "off" -> "1/4"' "${again[@]}" --set data.fold=1/4
refused 2 "data.manifest.split: [] -> [train, val]" "${again[@]}" --set data.manifest.split=[train,val]
printf 'name,finding\nLung Nodule,Nodule\nMass,Nodule\n' >"$scratch/other.csv"
refused 4 "was trained with another data.finding_names" "${again[@]}" --set data.finding_names="$scratch/other.csv"
awk -F, '$3 == "train" {print $2; exit}' "$scratch/two/split.csv" >"$scratch/withdrawn.txt"
refused 4 "was trained on another training split" "${again[@]}" --set data.exclude="$scratch/withdrawn.txt"

# Rows that take no part.
check "a filter and a list of the withdrawn" "$program" train "$small" "${T[@]}" --out "$scratch/some" --set data.filter=[view=PA] --set data.exclude="$scratch/withdrawn.txt" 2>"$scratch/log"
wanted=$(awk -F, -v who="$(cat "$scratch/withdrawn.txt")" 'NR > 1 && $7 == "PA" && $4 != who' "$table" | wc -l)
check "leave so many images" grep -q "($wanted images, $((160 - wanted)) left out" "$scratch/log"
check "and none of the withdrawn" eval '! tail -n +2 "$scratch/some/split.csv" | cut -d, -f2 | grep -qx "$(cat "$scratch/withdrawn.txt")"'
refused 2 "names a column that no table has ('viev'). Hint: nearest are 'view'" train "$small" "${T[@]}" --out "$scratch/no" --set data.filter=[viev=PA]
refused 3 "no row is left by data.filter" train "$small" "${T[@]}" --out "$scratch/no" --set data.filter=[view=LL]

# Tables as splits, folds.
head -n 131 "$table" >"$scratch/train.csv"
{ head -n 1 "$table"; tail -n +132 "$table"; } >"$scratch/valid.csv"
tables=(--set "data.manifest.path=[$scratch/train.csv,$scratch/valid.csv]")
last=$(tail -n 1 "$scratch/train.csv" | cut -d, -f4)
sed -i "2s/^\([^,]*,[^,]*,[^,]*\),[^,]*/\1,$last/" "$scratch/valid.csv"
refused 3 " in two splits, e.g. that of $scratch/train.csv:" train "$small" "${T[@]}" "${tables[@]}" --out "$scratch/no" --set data.manifest.split=[train,test]
refused 2 "data.manifest.split: 1 values for 2 tables" train "$small" "${T[@]}" "${tables[@]}" --out "$scratch/no" --set data.manifest.split=[train]
refused 2 "'data.fold' = '5/4' is not known" train "$small" "${T[@]}" --out "$scratch/no" --set data.fold=5/4
for fold in 1 2 3; do
  "$program" train "$small" --set train.max_steps=1 --set eval.splits=[] --out "$scratch/fold-$fold" --set data.fold=$fold/3 2>"$scratch/log" || cat "$scratch/log"
  grep ',val$' "$scratch/fold-$fold/split.csv" | cut -d, -f1
done | sort >"$scratch/folded"
check "each image of train_list is validated in one fold of three" diff "$scratch/folded" <(tr -d '\r' <"$phantom/train_val_list.txt" | sort)
finish
