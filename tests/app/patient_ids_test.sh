#!/usr/bin/env bash
# privacy.ids, from a site's own table to the answer to "was this patient in the training?"; --version and what the build is made of.
set -u
source tests/lib.sh
checks=$source_folder/tests/app/input_checks.py
cd "$scratch"
python3 "$checks" own_table "$phantom"
cat >site.yaml <<YAML
data:
  manifest: {format: csv, path: [table.csv], columns: {image: image, patient: who, findings: [Effusion]}}
  images: [$phantom/images]
  test_fraction: 0.3
  resize: 36
  crop: 32
model: {arch: densenet121, weights: none}
train: {batch: 8, max_steps: 2}
eval: {batch: 8, splits: [test]}
launch: {device: cpu, threads: 1}
YAML
key=$XDG_CONFIG_HOME/chexnet-train/patients.key
check "a run on a site's own table" "$program" train site.yaml --out run 2>log
check "no id of the table is in the run's files" sh -c '! grep -rlE "person-[0-9]" run --include=*.csv --include=*.json --include=*.jsonl --include=*.md --include=*.html --include=*.log'
check "the key is its owner's alone" [ "$(stat -c %a "$key")" = 600 ]
trained=$(awk -F, 'NR > 1 { print $2; exit }' table.csv)
"$program" inspect run --patient "$trained" nobody >said
check "inspect --patient: one is in the run, one is not" grep -q "^nobody: not in this run" said
check "and with how many images" grep -qE "^$trained: (train|val|test) \([0-9]+ images?\)" said
pseudonym=$(awk -F, 'NR > 1 { print $2; exit }' run/split.csv)
"$program" inspect run --patient "$pseudonym" >said
check "a pseudonym of split.csv is found, too" grep -qE "^$pseudonym: (train|val|test) \([0-9]+ images?\)" said
"$program" inspect run --patient "${pseudonym^^}" >said
check "in capitals, too" grep -qE "^${pseudonym^^}: (train|val|test) \([0-9]+ images?\)" said
"$program" inspect run --patient "p0000${pseudonym:5}" "${pseudonym%-*}-0123456789abcdef" >said
check "one of another key says whose it is not" grep -qx "p0000${pseudonym:5}: not in this run; a pseudonym of another key: this run's begin with ${pseudonym%-*}-" said
check "and one of this key is not in the run" grep -qx "${pseudonym%-*}-0123456789abcdef: not in this run" said
"$program" evaluate run --manifest table.csv --images "$phantom/images" --set data.manifest.format=csv >/dev/null 2>log
check "scoring the training's patients is found by their pseudonyms" grep -q "are of patients that the model was trained on" log

cp -r run cut; sed 2d run/split.csv >cut/split.csv
refused 3 "is not the table that the run wrote" inspect cut --patient "$trained"
refused 3 "is not the table that the run wrote" evaluate cut --manifest table.csv --images "$phantom/images" --set data.manifest.format=csv
check "sha256sum agrees with the run's own" sh -c 'cd run && sha256sum -c --quiet split.csv.sha256'
echo "$pseudonym" >withdrawn.txt
refused 3 "is a pseudonym, as split.csv may have it" train site.yaml --out no --set data.exclude=withdrawn.txt

mv "$key" elsewhere
refused 2 "calls patients by pseudonyms of another key" train site.yaml --out run --resume auto --set train.max_steps=3
rm -f "$key"
"$program" inspect run --patient "$trained" >/dev/null 2>log
check "without the key: exit 2" [ $? = 2 ]
check "the reason and what to do" grep -q "their key is not at hand" log
"$program" inspect run --patient "$pseudonym" "p0000${pseudonym:5}" --json >said.json 2>log
check "but a pseudonym needs none" look 'assert a[0]["images"] and "other_key" not in a[0] and a[1]["images"] == {} and a[1]["other_key"], a' said.json
check "no new key was made" [ ! -e "$key" ]
"$program" evaluate run --manifest table.csv --images "$phantom/images" --set data.manifest.format=csv >/dev/null 2>log
check "scoring says that patients were not compared" grep -q "only images, not patients, were looked for" log
check "--key names it" sh -c "'$program' inspect run --patient $trained --key elsewhere | grep -q '^$trained: '"
check "plain ids on request" "$program" train site.yaml --out plain --set privacy.ids=plain 2>log
check "they are the table's" grep -q ",$trained," plain/split.csv
"$program" inspect plain --patient "$pseudonym" >said
check "which no pseudonym is asked for" grep -qx "$pseudonym: not in this run; a pseudonym, and this run has plain ids" said

check "--version" sh -c "'$program' --version | grep -qE '^chexnet-train [0-9]+\.[0-9]+\.[0-9]+$'"
"$program" --version --json >version.json
check "--version --json names the components" python3 "$checks" components
# One number in two tables, spelt otherwise in each: perhaps one person, and then a leak.
python3 "$checks" two_tables "$phantom"
for other in zeros point; do
  "$program" inspect site.yaml --set "data.manifest.path=[plain.csv,$other.csv]" --set data.manifest.split='[train,test]' --set data.test_fraction=0 >/dev/null 2>log
  check "ids that are one number ($other) in two splits are warned of" grep -qE '\[split\] [0-9]+ patients of two splits have the same number, spelt otherwise .* e.g. those of plain.csv:[0-9]+ in train and '"$other.csv:[0-9]+ in test" log
done
"$program" inspect site.yaml >/dev/null 2>log
check "and others are not" sh -c '! grep -q "same number" log'
finish
