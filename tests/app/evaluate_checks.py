"""Figures and decision rules of evaluate, held against each other and against the tables that they are of.
usage: evaluate_checks.py FUNCTION ARGUMENTS..."""
import csv
import json
import math
import struct
import sys


def unweighted_loss():
    final, evaluated = (json.load(open(path)) for path in sys.argv[1:])
    assert abs(final["evaluations"]["test"]["loss"] - evaluated["loss"]) < 1e-9, (final["evaluations"]["test"]["loss"], evaluated["loss"])


def figures():
    result = json.load(open(sys.argv[1]))
    lines = list(csv.DictReader(open(sys.argv[2])))
    assert len({(l["finding"], l["figure"], l["rule"], l["group"]) for l in lines}) == len(lines)
    of = {(l["finding"], l["figure"], l["rule"]): l for l in lines if not l["group"]}
    for finding, f in result["findings"].items():
        assert f["few_positives"] == (f["positives"] < 10)
        line = of[finding, "auroc", ""]
        assert (float(line["value"]) if line["value"] else None) == f["auroc"] == result["auroc"][finding]
        if f["auroc_interval"] is not None:
            assert f["auroc_interval"] == [float(line["low"]), float(line["high"])]
        else:
            assert not line["low"] and (f["few_patients"] or f["auroc"] in (None, 1))
        if f["few_patients"]:
            assert f["auroc_interval"] is f["auroc_interval_delong"] is f["average_precision_interval"] is None
    assert sum(f["auroc_interval"] is not None for f in result["findings"].values()) > 3
    # Some findings here are of fewer than five patients.
    assert any(f["few_patients"] for f in result["findings"].values())
    assert result["mean_auroc_interval"][0] < result["mean_auroc"] < result["mean_auroc_interval"][1]
    assert result["intervals"]["by"] == "patient" and result["intervals"]["resamples"] == 10000

    points = {(p["finding"], p["rule"]): p for p in result["operating_points"]}
    assert len(points) == 4 * 14
    def at(path, finding, threshold):
        called, missed = 0, 0
        for row in csv.DictReader(open(path)):
            if row["label:" + finding] == "1":
                if float(row["prob:" + finding]) >= threshold: called += 1
                else: missed += 1
        return called, missed
    bins = {(l["finding"], l["rule"], l["group"]): l for l in lines if l["figure"] == "rate"}
    assert len(bins) == sum(len(b) for r in result["reliability"] for b in r["bins"].values())
    for r in result["reliability"]:
        mine = {group: l for (f, c, group), l in bins.items() if (f, c) == (r["finding"], r["calibration"]) and group.startswith("equal_widths ")}
        for b, line in zip(r["bins"]["equal_widths"], mine.values()):
            assert (float(line["value"]) if line["value"] else None) == b["rate"] and int(line["positives"]) == b["positives"]
            assert line["few_positives"] == str(int(b["positives"] < 10))
    seen = 0
    for (finding, rule), p in points.items():
        if p["threshold"] is None:
            continue
        c = p["confusion"]
        assert (c["true_positives"], c["false_negatives"]) == at(sys.argv[4], finding, p["threshold"])
        if rule == "sensitivity 0.8":
            called, missed = at(sys.argv[3], finding, p["threshold"])
            assert called / (called + missed) >= 0.8
            seen += 1
        assert p["at_prevalence"]["prevalence"] == 0.01
    assert seen > 3


def comparison():
    result = json.load(open(sys.argv[1]))
    c = result["comparison"]
    assert c["images"] == result["images"] and c["only_one"] == 0
    for finding, f in c["findings"].items():
        assert f["auroc"] == result["auroc"][finding]
        if f["auroc"] is not None:
            assert f["difference"] == f["auroc"] - f["auroc_against"]
            # None where no resample changes the figure.
            assert f["interval"] is None or f["interval"][0] <= f["difference"] <= f["interval"][1]
    assert any(f["interval"] for f in c["findings"].values())
    assert c["mean_interval"][0] < c["mean_difference"] < c["mean_interval"][1] and 0 < c["mean_p"] <= 1


def subgroups():
    result = json.load(open(sys.argv[1] + "/by.json"))
    table = {r["Image Index"]: r for r in csv.DictReader(open(sys.argv[2]))}
    rows = [table[r["image"]] for r in csv.DictReader(open(sys.argv[1] + "/run/predictions_test.csv"))]
    assert result["intervals"]["resamples"] == 300 and result["intervals"]["seed"] == 4
    by = {s["by"]: s["findings"] for s in result["subgroups"]}
    assert list(by) == ["sex", "age", "follow-up #"]
    def age(r):
        a = int(r["Patient Age"].rstrip("YMD"))
        return "0-29" if a < 30 else "30-59" if a < 60 else "60+"
    of = {"sex": lambda r: r["Patient Gender"], "age": age, "follow-up #": lambda r: r["Follow-up #"]}
    lines = {(l["finding"], l["figure"], l["group"]): l for l in csv.DictReader(open(sys.argv[1] + "/by.csv"))}
    gaps = 0
    for column, findings in by.items():
        assert len(findings) == 14
        for finding, f in findings.items():
            for g in f["groups"]:
                mine = [r for r in rows if of[column](r) == g["value"]]
                positives = sum(finding in r["Finding Labels"].split("|") for r in mine)
                assert (g["images"], g["positives"], g["patients"]) == (len(mine), positives, len({r["Patient ID"] for r in mine})), (g, len(mine))
                assert g["few_positives"] == (positives < 10)
                line = lines[finding, "auroc_gap", f"{column}={g['value']}"]
                assert (float(line["value"]) if line["value"] else None) == g["gap"]
                if g["gap"] is not None:
                    assert g["gap_interval"] is None or g["gap_interval"][0] < g["gap_interval"][1]
                    gaps += 1
            assert sum(g["images"] for g in f["groups"]) + f["unknown"] == len(rows)
    assert gaps > 10


def rotate_labels():
    rows = list(csv.reader(open(sys.argv[1], newline='')))
    labels = [i for i, name in enumerate(rows[0]) if name.startswith('label:')]
    shifted = rows[1:][-1:] + rows[1:][:-1]
    with open(sys.argv[2], 'w', newline='') as out:
        csv.writer(out).writerows([rows[0]] + [[other[i] if i in labels else cell for i, cell in enumerate(row)] for row, other in zip(rows[1:], shifted)])


def names():
    lines = list(csv.DictReader(open(sys.argv[1])))
    assert lines[0]["finding"] == 'Mass, "left"' and lines[0]["value"] == "1" and all(None not in l and None not in l.values() for l in lines), lines[0]


def print_rules():
    with open(sys.argv[1], "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    print(header["__metadata__"]["chexnet.decision_rules"])


def rules():
    own, val, rules = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("own", "val", "rules"))
    assert own["thresholds_from"] == "the model" and val["thresholds_from"] is None and "operating_points" not in val
    thresholds = {(f["finding"], t["rule"]): t["threshold"] for f in rules["findings"] for t in f["thresholds"]}
    points = {(p["finding"], p["rule"]): p["threshold"] for p in own["operating_points"]}
    assert points == thresholds and len(points) == 3 * 14 and ("Mass", "sensitivity 0.8") in points
    kinds = {(r["finding"], r["calibration"]) for r in own["reliability"]}
    assert len(kinds) == len(own["reliability"]) and ("Mass", "none") in kinds and sum(k == "isotonic" for _, k in kinds) >= 3
    for r in own["reliability"]:
        bins = r["bins"]["equal_masses"]
        assert len(bins) == 10 and sum(b["images"] for b in bins) == r["positives"] + r["negatives"] == own["images"]
        if r["calibration"] == "none":
            assert r["brier"] == own["findings"][r["finding"]]["brier"]


def predictions():
    rules = {f["finding"]: f for f in json.load(open(f"{sys.argv[1]}/rules.json"))["findings"]}
    rows = list(csv.DictReader(open(f"{sys.argv[1]}/p.csv")))
    lines = [json.loads(line) for line in open(f"{sys.argv[1]}/p.json")]
    assert len(rows) == 160 == len(lines) - 1
    seen = set()
    for row, line in zip(rows, lines):
        for finding, rule in rules.items():
            p = float(row["prob:" + finding])
            threshold = next(t["threshold"] for t in rule["thresholds"] if t["rule"] == "youden")
            if threshold is None:
                assert row["positive:" + finding] == "" and line["positive"][finding] is None
                assert row["calibrated:" + finding] == "" and line["calibrated"][finding] is None
                continue
            assert row["positive:" + finding] == ("1" if p >= threshold else "0") and line["positive"][finding] == (p >= threshold)
            calibrated = 1 / (1 + math.exp(-math.log(p / (1 - p)) / rule["temperature"]))
            assert abs(float(row["calibrated:" + finding]) - calibrated) < 1e-12 and line["calibrated"][finding] == float(row["calibrated:" + finding])
            seen.add(row["positive:" + finding])
    assert seen == {"0", "1"}
    point = lines[-1]["operating_point"]
    assert point["rule"] == "youden" and point["calibration"] == "temperature" and len(point["findings"]) == 14


def change_model():
    data = open(sys.argv[1], "rb").read()
    length, = struct.unpack("<Q", data[:8])
    header, tensors = json.loads(data[8:8 + length]), bytearray(data[8 + length:])
    metadata = header["__metadata__"]
    own, rules = (json.loads(metadata[k]) for k in ("chexnet", "chexnet.decision_rules"))
    if sys.argv[3] == "weights": tensors[-1] ^= 1
    if sys.argv[3] == "order": own["findings"].reverse()
    if sys.argv[3] == "names":
        own["findings"][0], own["findings"][1] = own["findings"][1], own["findings"][0]
        rules["findings"][0]["finding"], rules["findings"][1]["finding"] = own["findings"][0], own["findings"][1]
    if sys.argv[3] == "threshold": rules["findings"][0]["thresholds"][0]["threshold"] = 0.01
    if sys.argv[3] == "input": own["preprocessing"]["mean"] = [0.5, 0.5, 0.5]
    metadata.update({"chexnet": json.dumps(own), "chexnet.decision_rules": json.dumps(rules)})
    if sys.argv[3] == "without_sum": del metadata["chexnet.decision_rules_sha256"]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + tensors)


globals()[sys.argv.pop(1)]()
