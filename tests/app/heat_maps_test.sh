#!/usr/bin/env bash
# predict --heatmaps and evaluate --boxes: pictures for the chosen findings, scores of maps against boxes, the same on any
# number of ranks; damaged images, several boxes, boxes outside, lists that fit nothing.
set -u
source tests/lib.sh
checks=$source_folder/tests/app/predict_checks.py
fork_starts
shared_run plain "$scratch/run" || exit 1
run=$scratch/run
cd "$scratch"
mkdir set && head -n 5 "$phantom/test_list.txt" | while read -r name; do cp "$phantom/images/${name%$'\r'}" set/; done
mapfile -t images < <(ls set)
head -c 300 "set/${images[4]}" >cut.png && mv cut.png "set/${images[4]}"

# Pictures.
predict() { "$forked" predict "$run" "$@" 2>log; }
predict set --heatmaps maps --heatmap-findings Mass,edema --out p.csv --json >p.json
check "pictures of two findings" [ $? = 0 ]
check "the probabilities are those without pictures" eval 'predict set --out plain.csv && cmp p.csv plain.csv'
check "two ranks" predict set --heatmaps maps2 --heatmap-findings Mass,edema --ranks 2 --out p2.csv
check "write the same bytes" diff -r maps maps2
check "one picture for each image and finding, listed with its probability" python3 "$checks" maps
sides() { python3 -c '
import glob, struct
print(*{max(struct.unpack(">II", open(f, "rb").read(24)[16:])) for f in glob.glob("'"$1"'/*.png")})'; }
check "pictures of a size" predict set --heatmaps sized --heatmap-findings Mass --heatmap-size 100 --out p4.csv
check "are no larger, with their captions" [ "$(sides sized)" = 100 ]
refused 2 "--heatmap-size: 50 is neither 0 nor in 96 - 32768" predict "$run" set --heatmaps small --heatmap-size 50
check "class activation maps" predict set --heatmaps cam --heatmap-findings Mass --heatmap-method cam --out p3.csv
check "the probabilities are the same" cmp p.csv p3.csv
check "one picture for each image" eval '[ $(ls cam/*_Mass.png | wc -l) = 4 ]'
check "by threshold" predict set --heatmaps above --out p.csv
check "without thresholds of the model exactly the findings of at least 0.5" python3 "$checks" maps_by_threshold
refused 4 "is not an empty folder" predict "$run" set --heatmaps maps
refused 2 "Edema: a finding, and no image of that name is there. Hint: findings are joined by commas: --heatmap-findings Mass,Edema" predict "$run" set --heatmaps spaced --heatmap-findings Mass Edema
refused 2 "--heatmap-findings requires --heatmaps" predict "$run" set --heatmap-findings Mass
# Of two that begin at once one has the folder; what was ended leaves its mark.
"$program" predict "$run" set --heatmaps both --heatmap-findings Mass >one.txt 2>one.log & other=$!
rc=0 rc2=0; "$program" predict "$run" set --heatmaps both --heatmap-findings Mass,edema >two.txt 2>two.log || rc=$?
wait $other || rc2=$?
check "two into one new folder: one ends with 0 ($rc, $rc2)" eval '[ $((rc + rc2)) = 4 ] && [ $((rc * rc2)) = 0 ]'
check "whose pictures are all there is" eval '[ "$(ls both | wc -l)" = "$(wc -l <both/heatmaps.csv)" ]'
# kill -9 in the midst: the next command removes what is left, and nothing of one that lives.
mkdir many && for i in $(seq 60); do cp -l "set/${images[0]}" "many/$i.png"; done
slow_images 100 "$scratch/slowly"; touch slowly
begin() { "${slow[@]}" "$program" predict "$run" many --heatmaps left --heatmap-findings Mass,edema --out left.csv >/dev/null 2>slow.log & process=$!; await "pictures" has_pictures; }
has_pictures() { [ "$(ls left 2>/dev/null | grep -c png)" -ge 3 ]; }
begin; kill -STOP $process
refused 4 "left: another command writes to it" predict "$run" set --heatmaps left --heatmap-findings Mass
rm slowly; kill -CONT $process; rc=0; wait $process || rc=$?
check "the one that lives is not harmed" eval '[ $rc = 0 ] && [ "$(ls left/*.png | wc -l)" = 120 ] && [ "$(wc -l <left/heatmaps.csv)" = 121 ] && [ ! -e left/unfinished ]'
rm -r left left.csv; touch slowly; begin; kill -9 $process; wait $process 2>/dev/null
check "a killed one leaves its mark" eval '[ -e left/unfinished ] && [ ! -e left/heatmaps.csv ] && [ ! -e left.csv ]'
echo mine >left/notes.txt
refused 4 "left: is not an empty folder: notes.txt lies in it" predict "$run" set --heatmaps left --heatmap-findings Mass
rm left/notes.txt; echo half >.left.csv.0123456789abcdef.partial
check "the next one removes what it left" predict set --heatmaps left --heatmap-findings Mass,edema --out left.csv
check "also beside --out" [ ! -e .left.csv.0123456789abcdef.partial ]
check "and writes what it would have written anywhere" diff -r maps left
refused 2 "does not know 'Cyst'" predict "$run" set --heatmaps new --heatmap-findings Cyst

# Boxes.
evaluate() { "$forked" evaluate "$run" --split test "$@" 2>log; }
evaluate --boxes "$phantom/BBox_List_2017.csv" --json >boxes.json
check "maps against boxes" [ $? = 0 ]
check "the same on two ranks" eval 'evaluate --boxes "$phantom/BBox_List_2017.csv" --json --ranks 2 >boxes2.json && cmp boxes.json boxes2.json'
check "each boxed finding of the split is scored" python3 "$checks" boxes "$phantom"
evaluate --boxes "$phantom/BBox_List_2017.csv" --heatmap-method cam --json >cam.json
check "class activation maps against boxes" [ $? = 0 ]
check "other maps of the same cases" look '
layer, cam = a["localization"], b["localization"]
assert cam["cases"] == layer["cases"] and cam != layer
assert "called" not in layer["findings"]["Mass"]  # the run has no validation' {boxes,cam}.json
first=$(head -n 1 "$phantom/test_list.txt" | tr -d '\r')
header="Image Index,Finding Label,Bbox [x,y,w,h],,,"
printf '%s\n' "$header" "$first,Mass,0,0,64,64,,," "$first,Mass,500,500,9,9" "$first,Edema,500,500,9,9" "$first,Cyst,1,1,9,9" >odd.csv
evaluate --boxes odd.csv --json >odd.json
check "several boxes, boxes outside, an unknown finding" [ $? = 0 ]
check "a whole picture is pointed at; what lies outside is counted" python3 "$checks" odd_boxes
check "a warning says so" grep -q -- "--boxes-side 1024" log
printf '%s\n' "$header" "$first,Mass,40,40,500,500" "$first,Edema,500,500,9,9" >larger.csv
refused 3 "all of its boxes on these images (2) reach out of their pictures" evaluate "$run" --boxes larger.csv
printf '%s\n' "$header" "nowhere.png,Mass,0,0,64,64" >none.csv
refused 3 "no box is on an image of the test split" evaluate "$run" --boxes none.csv
printf 'Image Index,Finding Labels\n' >wrong.csv
refused 3 "this is no list of boxes" evaluate "$run" --boxes wrong.csv
finish
