"""An ensemble held against its members' tables.
usage: ensemble_checks.py FUNCTION ARGUMENTS..."""
import csv
import json
import math
import statistics
import struct
import sys


def read(path):
    return {row["image"]: row for row in csv.DictReader(open(path))}


def columns(row, kind):
    return {name[len(kind) :]: float(value) for name, value in row.items() if name.startswith(kind) and value}


def near(a, b, tolerance=1e-9):
    assert a.keys() == b.keys() and a, (a.keys(), b.keys())
    for name in a:
        assert abs(a[name] - b[name]) < tolerance, (name, a[name], b[name])


def same(ours, theirs):
    a, b = read(ours), read(theirs)
    assert list(a) == list(b)
    for image in a:
        for kind in ("label:", "prob:", "spread:"):
            near(columns(a[image], kind), columns(b[image], kind))


def mean(ensemble, *members):
    tables = [read(path) for path in members]
    for image, row in read(ensemble).items():
        of_members = [columns(table[image], "prob:") for table in tables]
        logits = {k: statistics.mean(math.log(m[k]) - math.log1p(-m[k]) for m in of_members) for k in of_members[0]}
        near(columns(row, "prob:"), {k: 1 / (1 + math.exp(-x)) for k, x in logits.items()})
        near(columns(row, "spread:"), {k: statistics.stdev(m[k] for m in of_members) for k in of_members[0]})


def out_of_fold(ensemble, *members):
    pooled = {}
    for path in members:
        table = read(path)
        assert not pooled.keys() & table.keys()
        pooled |= table
    table = read(ensemble)
    assert table.keys() == pooled.keys()
    for image in table:
        near(columns(table[image], "prob:"), columns(pooled[image], "prob:"), 1e-12)
        assert not columns(table[image], "spread:")


def split(ensemble, *members):
    closeness = {"train": 2, "val": 1, "test": 0}
    splits = [{image: row["split"] for image, row in read(path).items()} for path in members]
    for image, row in read(ensemble).items():
        assert row["split"] == max((s[image] for s in splits), key=closeness.get), image


def predicted(path, table):
    rows = {row["image"].rsplit("/", 1)[-1]: row for row in csv.DictReader(open(path))}
    for image, row in read(table).items():
        for kind in ("prob:", "spread:"):
            near(columns(rows[image], kind), columns(row, kind))


def onnx(path, members):
    data = open(path, "rb").read()
    for m in range(int(members)):
        assert b"member%d.features.conv0.weight" % m in data, m
    assert b"member%s." % members.encode() not in data and b"member0.member0" not in data
    assert b"Mean" in data and b"Sigmoid" in data


def damage(model, into, members):
    """Writes the file with another "members" in its description."""
    data = open(model, "rb").read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    description = json.loads(header["__metadata__"]["chexnet"])
    description["members"] = json.loads(members)
    header["__metadata__"]["chexnet"] = json.dumps(description)
    text = json.dumps(header).encode()
    open(into, "wb").write(struct.pack("<Q", len(text)) + text + data[end:])


globals()[sys.argv[1]](*sys.argv[2:])
