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
# By study: what a run and evaluate say are the figures of a table that Python made of each image's scores. In this set a patient
# has one study.
mimic=(--set data.manifest.format=mimic-cxr --set data.manifest.path=mimic-cxr/mimic-cxr-2.0.0-chexpert.csv.gz --set data.images=mimic-cxr --set data.train_list= --set data.test_list=)
check "mimic-cxr: trains, scored by study" "$program" train "$small" "${mimic[@]}" --set train.max_steps=1 --set eval.splits=[val,test] --set eval.by=study --out study.run
figures() {  # figures NAME ARGUMENTS...: of evaluate, into NAME.json
  "$program" evaluate "${@:2}" --json >"$1.json" 2>"$1.log"; check "figures: $1" [ $? = 0 ]
}
figures images study.run --set eval.by=image --out images.csv
check "thresholds of studies are not for images" grep -q "are of eval.crops=1 eval.by=study eval.combine=max, and these scores of eval.crops=1 eval.by=image: they are not used" images.log
figures max study.run --out max.csv
figures mean study.run --set eval.by=patient --set eval.combine=mean --out mean.csv
figures table --predictions images.csv --manifest mimic-cxr/mimic-cxr-2.0.0-chexpert.csv.gz --set data.manifest.format=mimic-cxr --set eval.by=study
check "predict calls nothing positive by them" "$program" predict study.run mimic-cxr --out predicted.csv
check "studies are what Python makes of their images" python3 - <<'PY'
import csv, json, math, re
def read(path): return list(csv.DictReader(open(path)))
images, studies = read('images.csv'), {}
for row in images: studies.setdefault(re.search('/s([0-9]+)/', row['image'])[1], []).append(row)
assert len(images) > len(studies) > 10
def mean(values): return 1 / (1 + math.exp(-sum(math.log(v / (1 - v)) for v in values) / len(values)))
for path, joined in (('study.run/predictions_test.csv', max), ('max.csv', max), ('mean.csv', mean)):
    rows = read(path)
    assert [r['image'] for r in rows] == [s[0]['image'] for s in studies.values()], path
    for row, study in zip(rows, studies.values()):
        for name, value in row.items():
            if name.startswith('prob:'): assert math.isclose(float(value), joined([float(i[name]) for i in study]), rel_tol=1e-12), (path, name)
            if name.startswith('label:'): assert value == max(i[name] for i in study), (path, name)
of = {name: json.load(open(f'{name}.json')) for name in ('images', 'max', 'mean', 'table')}
run = json.load(open('study.run/results.json'))['evaluations']['test']
assert (of['images']['by'], of['max']['by'], of['mean']['by'], run['by']) == ('image', 'study', 'patient', 'study')
assert of['max']['images'] == run['images'] == len(studies) and of['images']['images'] == len(images)
assert of['max']['auroc'] == run['auroc'] == of['table']['auroc'] != of['images']['auroc']
assert of['max']['loss'] == of['images']['loss']
assert 'called:' not in open('predicted.csv').readline()
PY
check "nor does its export have them" eval '"$program" export study.run --out study.onnx 2>log && grep -q "are not used" log && [ ! -e study.onnx/thresholds.json ]'
check "no picture is of an image with a threshold of studies" [ ! -e study.run/examples ]
check "its page says what was scored" grep -q "studies of [0-9]* patients, each with one score of all its images" study.run/report.html
refused 2 "a study may have several" evaluate study.run --by view
refused 2 "a table of predictions does not say whose its images are" evaluate --predictions images.csv --set eval.by=study
trains padchest padchest/padchest.csv --set data.test_fraction=0.3
trains vindr '[vindr/image_labels_train.csv, vindr/image_labels_test.csv]' --set data.manifest.split='[train, test]'
check "vindr: also of both tables" grep -q "published: train 15000 images, test 3000 images, train and test 18000 images" vindr.inspected
trains brax brax/master_spreadsheet_update.csv --set data.test_fraction=0.3
"$program" evaluate brax.run --manifest padchest/padchest.csv --images padchest --set data.manifest.format=padchest >scores 2>log
check "brax: a run scores another set's images, findings by name" [ $? = 0 ]
refused 2 "eval.by=patient: vindr/image_labels_test.csv does not say whose its images are" evaluate brax.run --manifest vindr/image_labels_test.csv --images vindr --set data.manifest.format=vindr --set eval.by=patient
finish
