"""The pages that a run leaves, and what stands beside them.
usage: report_checks.py FUNCTION ARGUMENTS..."""
import csv
import html.parser
import json
import re
import sys


def page():
    # Well-formed, self-contained, small; text on its ground has a contrast of 4.5 in both themes, marks of 3 (WCAG 2, relative luminance).
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


def results():
    run = json.load(open(sys.argv[1]))
    test = run["evaluations"]["test"]
    assert run["format"] == 1 and run["data"]["patients_in_two_splits"] == 0, run
    assert len(test["findings"]) == 14 and test["intervals"]["resamples"] == 10000, test
    frequent = [f["auroc"] for f in test["findings"].values() if min(f["positives"], f["negatives"]) >= 10 and not f["few_patients"]]
    if test["mean_is_rough"]:
        assert not frequent and test["mean_auroc_interval"] is None, test
    else:
        assert test["findings_in_mean"] == len(frequent) and abs(test["mean_auroc"] - sum(frequent) / len(frequent)) < 1e-12, test
        assert test["mean_auroc_interval"][0] < test["mean_auroc"] < test["mean_auroc_interval"][1], test
    assert run["data"]["splits"]["test"]["images"] == test["images"] > 0
    assert "config.yaml" in run["command"]


def change_table():
    rows = list(csv.reader(open(sys.argv[1])))
    column = next(i for i, name in enumerate(rows[0]) if name.startswith("prob:"))
    for row in rows[1:]:
        row[column] = str(1 - float(row[column]))
    csv.writer(open(sys.argv[1], "w"), lineterminator="\n").writerows(rows)


def measured():
    # A page that writes its layout into an attribute of itself: regions that scroll, and how far the page reaches beyond its window.
    script = """<script>
    const wide = [...document.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth);
    const page = document.documentElement;
    page.dataset.layout = [`tables ${document.querySelectorAll(".wide").length}`, `beyond ${Math.max(0, page.scrollWidth - innerWidth)} px`,
      ...wide.map(e => `scrolls: ${e.getAttribute("aria-label")} (${e.scrollWidth} in ${e.clientWidth} px)`)].join("; ");
    </script>"""
    print(open(sys.argv[1], encoding="utf-8").read().replace("</body>", script + "</body>"))


def acceptance():
    result = json.load(open(sys.argv[1]))
    assert result['acceptance']['node_type'] == 'fast'
    rows = {row['name']: row for row in result['acceptance']['rows']}
    assert set(rows) == {'step', 'read', 'gpus', 'driver', 'self_test'}, rows
    assert not any(row['good'] for row in rows.values()), rows
    assert 0 < float(rows['step']['found']) < float(rows['step']['wanted']) == 1e6 and rows['step']['unit'] == 'images/s'
    assert float(rows['read']['wanted']) == 1e9
    assert rows['self_test']['found'] == ''
    failed = {check['name'] for check in result['checks'] if check['level'] == 'FAIL'}
    assert {'acceptance ' + name for name in rows} <= failed, failed


def missing_images():
    run = json.load(open(sys.argv[1] + "/results.json"))
    assert [run["data"]["splits"][s]["missing"] for s in ("train", "val", "test")] == [3, 0, 2], run["data"]
    assert run["evaluations"]["test"]["missing"] == 2
    final = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl") if '"final"' in line]
    assert final[0]["missing"] == 2, final


globals()[sys.argv.pop(1)]()
