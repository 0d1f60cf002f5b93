#!/usr/bin/env bash
# predict --heatmaps and evaluate --boxes: pictures for the chosen findings, scores of maps against boxes, the same on any
# number of ranks; damaged images, several boxes, boxes outside, lists that fit nothing.
set -u
source tests/lib.sh
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
check "a run" "$program" train "$small" --out "$scratch/run" --set train.max_steps=2 --set data.val_fraction=0 --set eval.splits=[] 2>"$scratch/log"
run=$scratch/run
cd "$scratch"
mkdir set && head -n 5 "$phantom/test_list.txt" | while read -r name; do cp "$phantom/images/${name%$'\r'}" set/; done
mapfile -t images < <(ls set)
head -c 300 "set/${images[4]}" >cut.png && mv cut.png "set/${images[4]}"

# Pictures.
predict() { "$program" predict "$run" "$@" 2>log; }
predict set --heatmaps maps --heatmap-findings Mass,edema --out p.csv --json >p.json
check "pictures of two findings" [ $? = 0 ]
check "the probabilities are those without pictures" eval 'predict set --out plain.csv && cmp p.csv plain.csv'
check "two ranks" predict set --heatmaps maps2 --heatmap-findings Mass,edema --ranks 2 --out p2.csv
check "write the same bytes" diff -r maps maps2
python3 - <<'PY' && echo "ok: one picture for each image and finding, listed with its probability" || fail "pictures"
import csv, json, os, struct
rows = list(csv.DictReader(open('maps/heatmaps.csv')))
scores = {r['image']: r for r in csv.DictReader(open('p.csv'))}
good = [i for i, r in scores.items() if not r['error']]
assert len(good) == 4 and len(rows) == 8, rows
assert sorted(r['file'] for r in rows) == sorted(f for f in os.listdir('maps') if f.endswith('.png'))
for r in rows:
    assert r['probability'] == scores[r['image']]['prob:' + r['finding']], r
    head = open('maps/' + r['file'], 'rb').read(26)
    width, height, depth, color = struct.unpack('>IIBB', head[16:26])
    assert (width, depth, color) == (64, 8, 2) and 64 < height < 130, (width, height)
for line in [json.loads(l) for l in open('p.json')][:-1]:
    assert line.get('heat_maps', {}) == {r['finding']: r['file'] for r in rows if r['image'] == line['image']}, line
PY
sides() { python3 -c '
import glob, struct
print(*{struct.unpack(">I", open(f, "rb").read(20)[16:])[0] for f in glob.glob("'"$1"'/*.png")})'; }
check "pictures of a size" predict set --heatmaps sized --heatmap-findings Mass --heatmap-size 50 --out p4.csv
check "are no wider" [ "$(sides sized)" = 50 ]
check "class activation maps" predict set --heatmaps cam --heatmap-findings Mass --heatmap-method cam --out p3.csv
check "the probabilities are the same" cmp p.csv p3.csv
check "one picture for each image" eval '[ $(ls cam/*_Mass.png | wc -l) = 4 ]'
check "by threshold" predict set --heatmaps above --heatmap-threshold 0.45 --out p.csv
python3 - <<'PY' && echo "ok: exactly the findings of at least the threshold" || fail "threshold"
import csv
above = {(r['image'], c[5:]) for r in csv.DictReader(open('p.csv')) for c, v in r.items()
         if c.startswith('prob:') and v and float(v) >= 0.45}
assert {(r['image'], r['finding']) for r in csv.DictReader(open('above/heatmaps.csv'))} == above
PY
refused 4 "is not an empty folder" predict "$run" set --heatmaps maps
refused 2 "needs --heatmap-method cam" predict "$run" set --heatmaps new --heatmap-findings Mass --heatmap-shifts 4
refused 2 "a number" predict "$run" set --heatmaps new --heatmap-threshold nan
# Of two that begin at once one has the folder; what was ended leaves its mark.
"$program" predict "$run" set --heatmaps both --heatmap-findings Mass >one.txt 2>one.log & other=$!
rc=0 rc2=0; "$program" predict "$run" set --heatmaps both --heatmap-findings Mass,edema >two.txt 2>two.log || rc=$?
wait $other || rc2=$?
check "two into one new folder: one ends with 0 ($rc, $rc2)" eval '[ $((rc + rc2)) = 4 ] && [ $((rc * rc2)) = 0 ]'
check "whose pictures are all there is" eval '[ "$(ls both | wc -l)" = "$(wc -l <both/heatmaps.csv)" ]'
# kill -9 in the midst: the next command removes what is left, and nothing of one that lives.
mkdir many && for i in $(seq 600); do cp -l "set/${images[0]}" "many/$i.png"; done
slow() { exec "$program" predict "$run" many --heatmaps left --heatmap-findings Mass,edema --out left.csv; }
begun() { for _ in $(seq 600); do [ "$(ls left 2>/dev/null | grep -c png)" -ge 3 ] && return; sleep 0.05; done; echo "FAILED: no picture came"; exit 1; }
slow >/dev/null 2>slow.log & process=$!
begun; kill -STOP $process
refused 4 "left: another command writes to it" predict "$run" set --heatmaps left --heatmap-findings Mass
kill -CONT $process; rc=0; wait $process || rc=$?
check "the one that lives is not harmed" eval '[ $rc = 0 ] && [ "$(ls left/*.png | wc -l)" = 1200 ] && [ "$(wc -l <left/heatmaps.csv)" = 1201 ] && [ ! -e left/unfinished ]'
rm -r left left.csv; slow >/dev/null 2>slow.log & process=$!
begun; kill -9 $process; wait $process 2>/dev/null
check "a killed one leaves its mark" eval '[ -e left/unfinished ] && [ ! -e left/heatmaps.csv ] && [ ! -e left.csv ]'
echo mine >left/notes.txt
refused 4 "left: is not an empty folder: notes.txt lies in it" predict "$run" set --heatmaps left --heatmap-findings Mass
rm left/notes.txt; echo half >.left.csv.0123456789abcdef.partial
check "the next one removes what it left" predict set --heatmaps left --heatmap-findings Mass,edema --out left.csv
check "also beside --out" [ ! -e .left.csv.0123456789abcdef.partial ]
check "and writes what it would have written anywhere" diff -r maps left
refused 2 "does not know 'Cyst'" predict "$run" set --heatmaps new --heatmap-findings Cyst

# Boxes.
evaluate() { "$program" evaluate "$run" --split test "$@" 2>log; }
evaluate --boxes "$phantom/BBox_List_2017.csv" --json >boxes.json
check "maps against boxes" [ $? = 0 ]
check "the same on two ranks" eval 'evaluate --boxes "$phantom/BBox_List_2017.csv" --json --ranks 2 >boxes2.json && cmp boxes.json boxes2.json'
python3 - "$phantom" <<'PY' && echo "ok: each boxed finding of the split is scored" || fail "boxes"
import collections, csv, json, sys
test = set(open(sys.argv[1] + '/test_list.txt').read().split())
rows = list(csv.reader(open(sys.argv[1] + '/BBox_List_2017.csv')))[1:]
cases = collections.Counter(f.replace('Infiltrate', 'Infiltration') for i, f in {(r[0], r[1]) for r in rows} if i in test)
found = json.load(open('boxes.json'))['localization']
assert {f: v['cases'] for f, v in found['findings'].items()} == dict(cases), found
assert found['cases'] == sum(cases.values()) and found['damaged'] == found['outside'] == found['cut_boxes'] == 0
assert found['other_images'] == len({r[0] for r in rows} - test)
for f in found['findings'].values():
    shares = [f['iou_at'][t]['value'] for t in sorted(f['iou_at'])]
    assert len(shares) == 7 and shares == sorted(shares, reverse=True) and 0 <= f['pointing']['value'] <= 1
PY
evaluate --boxes "$phantom/BBox_List_2017.csv" --heatmap-method cam --json >cam.json
check "class activation maps against boxes" [ $? = 0 ]
check "other maps of the same cases" python3 -c "
import json
layer, cam = (json.load(open(f))['localization'] for f in ('boxes.json', 'cam.json'))
assert cam['cases'] == layer['cases'] and cam != layer
assert 'called' not in layer['findings']['Mass']  # the run has no validation
"
first=$(head -n 1 "$phantom/test_list.txt" | tr -d '\r')
header="Image Index,Finding Label,Bbox [x,y,w,h],,,"
printf '%s\n' "$header" "$first,Mass,0,0,64,64,,," "$first,Mass,500,500,9,9" "$first,Edema,500,500,9,9" "$first,Cyst,1,1,9,9" >odd.csv
evaluate --boxes odd.csv --json >odd.json
check "several boxes, boxes outside, an unknown finding" [ $? = 0 ]
python3 - <<'PY' && echo "ok: a whole picture is pointed at; what lies outside is counted" || fail "odd boxes"
import json
found = json.load(open('odd.json'))['localization']
assert found['findings']['Mass']['pointing']['value'] == 1 and found['cases'] == 1, found
assert (found['outside'], found['cut_boxes'], found['unknown_findings']) == (1, 2, ['Cyst']), found
PY
check "a warning says so" grep -q -- "--boxes-side 1024" log
printf '%s\n' "$header" "$first,Mass,40,40,500,500" "$first,Edema,500,500,9,9" >larger.csv
refused 3 "all of its boxes on these images (2) reach out of their pictures" evaluate "$run" --boxes larger.csv
printf '%s\n' "$header" "nowhere.png,Mass,0,0,64,64" >none.csv
refused 3 "no box is on an image of the test split" evaluate "$run" --boxes none.csv
printf 'Image Index,Finding Labels\n' >wrong.csv
refused 3 "this is no list of boxes" evaluate "$run" --boxes wrong.csv
finish
