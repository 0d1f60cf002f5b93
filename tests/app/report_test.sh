#!/usr/bin/env bash
# The page that a run leaves, and `report`: whole, readable in light and dark, without network and scripts; the form that may be
# passed on; two runs side by side; what is refused.
source tests/lib.sh
checks=$source_folder/tests/app/report_checks.py
fork_starts
train_run() { "$program" train "$small" --set eval.splits=[val,test] --set train.max_steps=14 "$@" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }; }
train_run --out "$scratch/one"
ln -s "$phantom/images" "$scratch/pictures"
train_run --out "$scratch/two" --set run.seed=2 --set train.lr=0.0003 --set data.images=["$scratch/pictures"]

page() { python3 "$checks" page "$1"; }
check "the page of a run is whole, readable and needs no network" page "$scratch/one/report.html"
check "it says what it is not" grep -q "Not a medical device" "$scratch/one/report.html"
check "results.json has the figures of train --json's form" python3 "$checks" results "$scratch/one/results.json"
cp "$scratch/one/report.html" "$scratch/first.html"
check "report writes it again" "$program" report "$scratch/one"
check "the same, byte for byte" cmp "$scratch/first.html" "$scratch/one/report.html"
check "model_card.md is there" grep -q "^## Not to be used for" "$scratch/one/model_card.md"
hidden() { ! grep -qE "$scratch|$(hostname)|Data_Entry" "$1"; }
check "for passing on" "$forked" report "$scratch/one" --no-images
check "no place, host or table is in it" hidden "$scratch/one/report-shared.html"
check "it is whole too" page "$scratch/one/report-shared.html"
check "but its figures are" grep -q "95 % intervals by 10,000 resamples" "$scratch/one/report-shared.html"

cp -r "$scratch/one" "$scratch/less" && rm "$scratch/less/predictions_test.csv" && chmod 750 "$scratch/less"
check "a run without its table of predictions has a page" "$forked" report "$scratch/less"
check "which says what it lacks" grep -q "predictions_test.csv is not in the run folder, so no curves are drawn" "$scratch/less/report.html"
rm "$scratch/less/metrics.jsonl"; rm -r "$scratch/less/examples"; "$forked" report "$scratch/less"
for gap in "What this page lacks</h2>" "Curves of the training: metrics.jsonl is not in the run folder" "Examples with heat maps: examples/examples.json is not in the run folder: none were drawn" "ROC, precision and recall, reliability: predictions_test.csv is not in the run folder"; do
  check "$gap" grep -q "$gap" "$scratch/less/report.html"
done
check "and is as private as its run" [ "$(stat -c %a "$scratch/less/report.html")" = 640 ]
check "two settings side by side" "$forked" report --compare "$scratch/one" "$scratch/two" --out "$scratch/both.html" 2>"$scratch/log"
check "of one seed no difference is shown" grep -q "one seed tells nothing of another training, so no difference is shown of .* (three or more" "$scratch/log"
check "that page is whole" page "$scratch/both.html"
check "it has what differs" grep -q "train.lr" "$scratch/both.html"
check "and of paths their ends alone" eval 'grep -q "\[pictures\]" "$scratch/both.html" && ! grep -qF "$scratch" "$scratch/both.html"'
check "and the difference image by image" grep -q "train.lr=3e-04 minus " "$scratch/both.html"
cp -r "$scratch/two" "$scratch/changed"
python3 "$checks" change_table "$scratch/changed/predictions_test.csv"
check "a run whose table was changed" "$forked" report --compare "$scratch/one" "$scratch/changed" --out "$scratch/changed.html"
check "is not compared image by image" grep -q "predictions_test.csv of changed was changed after the run" "$scratch/changed.html"
mkdir "$scratch/sweep" && cp -r "$scratch/one" "$scratch/two" "$scratch/sweep"
sed -i 's/"ranks":1,/"ranks":2,/' "$scratch/sweep/two/metrics.jsonl"  # as if it had had two
check "a folder of runs" "$forked" report --compare "$scratch/sweep" --out "$scratch/sweep.html"
check "stands for its runs" grep -q "train.lr=3e-04 minus " "$scratch/sweep.html"
cp -r "$scratch/one" "$scratch/sweep/unread" && : >"$scratch/sweep/unread/config.yaml"
cp -r "$scratch/two" "$scratch/sweep/spoiled" && echo '{' >"$scratch/sweep/spoiled/results.json"
check "with damaged ones in it" "$forked" report --compare "$scratch/sweep" --out "$scratch/sweep2.html" 2>"$scratch/log"
check "which are left out" eval 'grep -q "unread/config.yaml.*this run is left out" "$scratch/log" && grep -q "spoiled .*is left out: its results.json is damaged" "$scratch/log" && grep -q "train.lr=3e-04 minus " "$scratch/sweep2.html"'
echo 'no_such_section: 1' >"$scratch/sweep/unread/config.yaml"
"$forked" status "$scratch/sweep" >/dev/null 2>"$scratch/log"
check "status leaves such a run out, too" grep -q "unread/config.yaml.*this run is left out" "$scratch/log"
check "on other numbers of ranks scaling is shown" grep -q "speed-up" "$scratch/sweep.html"
check "on one number it is not" bash -c '! grep -q "speed-up" "$0"' "$scratch/both.html"
refused 2 "one run cannot be compared" report --compare "$scratch/one"
refused 2 "one run cannot be compared" report --compare "$scratch/one" "$scratch/two/../one"
refused 2 "one, or --compare" report "$scratch/one" "$scratch/two"
cp -r "$scratch/two" "$scratch/torn" && : >"$scratch/torn/metrics.jsonl"
refused 2 "of 2 runs only 1 can be compared; not counted, because metrics.jsonl is empty, damaged or not there: torn" report --compare "$scratch/one" "$scratch/torn" --out "$scratch/none.html"
mkdir "$scratch/empty"
refused 4 "[run] $scratch/empty: neither a run nor a folder of runs" report --compare "$scratch/empty" "$scratch/one"
refused 4 "holds no run (no config.yaml)" report "$scratch/empty"
cp "$scratch/one/config.yaml" "$scratch/empty"
refused 4 "no results.json" report "$scratch/empty"
echo '{"format": 1, "run": {}, "data": [], "model": 1, "evaluations": [1, {"a": "b"}]}' >"$scratch/empty/results.json"
refused 4 "'data.splits' is not what a run writes there" report "$scratch/empty" --out "$scratch/strange.html"
check "and no page is made" [ ! -e "$scratch/strange.html" ]

# A run whose config.yaml is gone or damaged: all forms of the page answer alike, and none is written.
cp -r "$scratch/one" "$scratch/spoiled" && rm "$scratch/spoiled/config.yaml" "$scratch/spoiled"/*.html
config=$scratch/spoiled/config.yaml
all_refuse() {  # all_refuse CODE PART
  refused "$1" "$2" report "$scratch/spoiled"
  refused "$1" "$2" report "$scratch/spoiled" --out "$scratch/none.html"
  refused "$1" "$2" report "$scratch/spoiled" --no-images
  refused "$1" "$2" report --compare "$scratch/one" "$scratch/spoiled" --out "$scratch/none.html"
  refused "$1" "$2" report --compare "$scratch/spoiled" "$scratch/one" --out "$scratch/none.html"
}
all_refuse 4 "$scratch/spoiled: holds no run (no config.yaml)"
head -c 300 /dev/urandom >"$config"
all_refuse 2 "$config:"
sed '7s/.*/  nonsense: [/' "$scratch/one/config.yaml" >"$config"
all_refuse 2 "$config:"
sed '1i no_such_section: 1' "$scratch/one/config.yaml" >"$config"
all_refuse 2 "$config:1:"
: >"$config"
all_refuse 2 "$config:1: names no table"
check "nothing was written" eval '! ls "$scratch/none.html" "$scratch/spoiled"/*.html 2>/dev/null'
finish
