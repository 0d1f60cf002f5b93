#!/usr/bin/env bash
# Data sets by their names, as downloaded: a phantom set in the layout of each is inspected, trained on and scored, and the labels
# in the table of predictions are the phantom's.
source tests/lib.sh
python3 "$source_folder/tests/app/named_sets.py" "$phantom" "$scratch" || exit 1
cd "$scratch" || exit 1
trains() {  # trains FORMAT TABLE SET...: a step and the scores of the test split
  local format=$1; shift
  local set=(--set data.manifest.format="$format" --set data.manifest.path="$1" --set data.images="$format" --set data.train_list= --set data.test_list=); shift
  "$program" inspect "$small" "${set[@]}" "$@" >"$format.inspected" 2>&1; check "$format: inspect finds nothing wrong" [ $? = 0 ]
  check "$format: trains and scores" "$program" train "$small" "${set[@]}" "$@" --set train.max_steps=1 --set eval.splits=[test] --out "$format.run" 2>"$format.log"
  check "$format: labels are the phantom's" python3 -c "
import csv
wanted = {}
for row in csv.DictReader(open('$format/expected.csv')):
    wanted.setdefault(row['image'], set()).add(row['finding'])
rows = list(csv.DictReader(open('$format.run/predictions_test.csv')))
for row in rows:
    found = {name[6:] for name, value in row.items() if name.startswith('label:') and value == '1'}
    assert found == wanted.get(row['image'], set()), (row['image'], found, wanted.get(row['image']))
positives = sum(len(wanted.get(row['image'], ())) for row in rows)
assert len(rows) > 10 and positives > 10, (len(rows), positives)
print('$format:', len(rows), 'images,', positives, 'positives')"
}
trains mimic-cxr mimic-cxr/mimic-cxr-2.0.0-chexpert.csv.gz
check "mimic-cxr: the splits are the table's" python3 -c "
import csv, gzip
wanted = {row['dicom_id']: row['split'].replace('validate', 'val') for row in csv.DictReader(gzip.open('mimic-cxr/mimic-cxr-2.0.0-split.csv.gz', 'rt'))}
found = {row['image'].split('/')[-1][:-4]: row['split'] for row in csv.DictReader(open('mimic-cxr.run/split.csv'))}
assert found == wanted and set(found.values()) == {'train', 'val', 'test'}"
check "mimic-cxr: inspect knows the published size" grep -q "published: all splits 377110 images" mimic-cxr.inspected
trains padchest padchest/padchest.csv --set data.test_fraction=0.3
trains vindr '[vindr/image_labels_train.csv, vindr/image_labels_test.csv]' --set data.manifest.split='[train, test]'
check "vindr: also of both tables" grep -q "published: train 15000 images, test 3000 images, train and test 18000 images" vindr.inspected
trains brax brax/master_spreadsheet_update.csv --set data.test_fraction=0.3
"$program" evaluate brax.run --manifest padchest/padchest.csv --images padchest --set data.manifest.format=padchest >scores 2>log
check "brax: a run scores another set's images, findings by name" [ $? = 0 ]
finish
