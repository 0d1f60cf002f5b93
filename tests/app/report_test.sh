#!/usr/bin/env bash
# The page that a run leaves, and `report`: whole, readable in light and dark, without network and scripts; the form that may be
# passed on; two runs side by side; what is refused.
source tests/lib.sh
train_run() { "$program" train "$small" --set eval.splits=[val,test] --set train.max_steps=14 "$@" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }; }
train_run --out "$scratch/one"
ln -s "$phantom/images" "$scratch/pictures"
train_run --out "$scratch/two" --set run.seed=2 --set train.lr=0.0003 --set data.images=["$scratch/pictures"]

cat >"$scratch/page.py" <<'PY'
# Well-formed, self-contained, small; text on its ground has a contrast of 4.5 in both themes, marks of 3 (WCAG 2, relative luminance).
import html.parser, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
assert len(page) < 3_000_000, len(page)
void = {"meta", "img", "br", "line", "circle", "polyline", "rect", "link", "path"}
class Tags(html.parser.HTMLParser):
    open = []
    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "iframe", "object", "embed", "form"), tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("src", "href"): assert value.startswith(("#", "data:image/png;base64,")), value
        if tag not in void: self.open.append(tag)
    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
tags = Tags(); tags.feed(page); assert not tags.open, tags.open
assert "url(" not in page and "@import" not in page
def luminance(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
themes = re.findall(r":root \{(.*?)\}", page, re.S)
assert len(themes) == 3, themes  # light, dark, print
for theme in themes:
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme))
    for text in ("ink", "soft", "curve", "second", "third"):
        for ground in ("page", "note"):
            found = contrast(colors[text], colors[ground])
            assert found >= 4.5, (text, ground, found)
    assert contrast(colors["mark"], colors["page"]) >= 3
ids = re.findall(r' id="([^"]+)"', page)
assert len(ids) == len(set(ids)), ids
for link in re.findall(r'href="#([^"]+)"', page): assert link in ids, link
PY
page() { python3 "$scratch/page.py" "$1"; }
check "the page of a run is whole, readable and needs no network" page "$scratch/one/report.html"
check "it says what it is not" grep -q "Not a medical device" "$scratch/one/report.html"
check "results.json has the figures of train --json's form" python3 - "$scratch/one/results.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
test = run["evaluations"]["test"]
assert run["format"] == 1 and run["data"]["patients_in_two_splits"] == 0, run
assert len(test["findings"]) == 14 and test["intervals"]["resamples"] == 10000, test
assert run["data"]["splits"]["test"]["images"] == test["images"] > 0
assert "config.yaml" in run["command"]
PY
cp "$scratch/one/report.html" "$scratch/first.html"
check "report writes it again" "$program" report "$scratch/one"
check "the same, byte for byte" cmp "$scratch/first.html" "$scratch/one/report.html"
check "model_card.md is there" grep -q "^## Not to be used for" "$scratch/one/model_card.md"
hidden() { ! grep -qE "$scratch|$(hostname)|Data_Entry" "$1"; }
check "for passing on" "$program" report "$scratch/one" --no-images
check "no place, host or table is in it" hidden "$scratch/one/report-shared.html"
check "it is whole too" page "$scratch/one/report-shared.html"
check "but its figures are" grep -q "95 % intervals by 10,000 resamples" "$scratch/one/report-shared.html"

cp -r "$scratch/one" "$scratch/less" && rm "$scratch/less/predictions_test.csv" && chmod 750 "$scratch/less"
check "a run without its table of predictions has a page" "$program" report "$scratch/less"
check "which says what it lacks" grep -q "predictions_test.csv is not in the run folder, so no curves are drawn" "$scratch/less/report.html"
rm "$scratch/less/metrics.jsonl"; rm -r "$scratch/less/examples"; "$program" report "$scratch/less"
for gap in "What this page lacks</h2>" "Curves of the training: metrics.jsonl is not in the run folder" "Examples with heat maps: examples/examples.json is not in the run folder: none were drawn" "ROC, precision and recall, reliability: predictions_test.csv is not in the run folder"; do
  check "$gap" grep -q "$gap" "$scratch/less/report.html"
done
check "and is as private as its run" [ "$(stat -c %a "$scratch/less/report.html")" = 640 ]
check "two runs side by side" "$program" report --compare "$scratch/one" "$scratch/two" --out "$scratch/both.html"
check "that page is whole" page "$scratch/both.html"
check "it has what differs" grep -q "train.lr" "$scratch/both.html"
check "and of paths their ends alone" eval 'grep -q "\[pictures\]" "$scratch/both.html" && ! grep -qF "$scratch" "$scratch/both.html"'
check "and the difference image by image" grep -q "two minus one" "$scratch/both.html"
cp -r "$scratch/two" "$scratch/changed"
python3 - "$scratch/changed/predictions_test.csv" <<'PY'
import csv, sys
rows = list(csv.reader(open(sys.argv[1])))
column = next(i for i, name in enumerate(rows[0]) if name.startswith("prob:"))
for row in rows[1:]:
    row[column] = str(1 - float(row[column]))
csv.writer(open(sys.argv[1], "w"), lineterminator="\n").writerows(rows)
PY
check "a run whose table was changed" "$program" report --compare "$scratch/one" "$scratch/changed" --out "$scratch/changed.html"
check "is not compared image by image" grep -q "predictions_test.csv of changed was changed after the run" "$scratch/changed.html"
mkdir "$scratch/sweep" && cp -r "$scratch/one" "$scratch/two" "$scratch/sweep"
sed -i 's/"ranks":1,/"ranks":2,/' "$scratch/sweep/two/metrics.jsonl"  # as if it had had two
check "a folder of runs" "$program" report --compare "$scratch/sweep" --out "$scratch/sweep.html"
check "stands for its runs" grep -q "two minus one" "$scratch/sweep.html"
check "on other numbers of ranks scaling is shown" grep -q "speed-up" "$scratch/sweep.html"
check "on one number it is not" bash -c '! grep -q "speed-up" "$0"' "$scratch/both.html"
refused 2 "one run cannot be compared" report --compare "$scratch/one"
refused 2 "one, or --compare" report "$scratch/one" "$scratch/two"
mkdir "$scratch/empty"
refused 4 "holds no run (no config.yaml)" report "$scratch/empty"
cp "$scratch/one/config.yaml" "$scratch/empty"
refused 4 "no results.json" report "$scratch/empty"
echo '{"format": 1, "evaluations": [1, {"a": "b"}]}' >"$scratch/empty/results.json"
check "a record of strange types makes a page" "$program" report "$scratch/empty" --out "$scratch/strange.html"
check "which is whole" page "$scratch/strange.html"

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
