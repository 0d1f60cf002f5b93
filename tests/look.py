"""usage: look.py CODE [FILE...]: runs CODE, to which a, b, c, ... are what the files hold.

JSON is an object, a .jsonl a list of them, a .csv a list of rows, a .safetensors its tensors' bytes by name, a folder
its own path. Needs nothing but Python: safetensors are a JSON header and raw little-endian numbers.
"""
import array
import csv
import json
import linecache
import os
import string
import struct
import sys


def parts(path):
    """The header of a .safetensors without its metadata, and the bytes after it."""
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length:]


def read(path):
    if os.path.isdir(path):
        return path
    if path.endswith(".safetensors"):
        header, data = parts(path)
        return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}
    with open(0 if path == "-" else path, newline="", encoding="utf-8") as file:
        if path.endswith(".csv"):
            return list(csv.DictReader(file))
        return [json.loads(line) for line in file] if path.endswith(".jsonl") else json.load(file)


def of(event, lines):
    return [line for line in lines if line["event"] == event]


def numbers(run):
    header, data = parts(os.path.join(run, "checkpoints/last/model.safetensors"))
    return {name: array.array("f" if entry["dtype"] == "F32" else "d", data[slice(*entry["data_offsets"])])
            for name, entry in header.items() if entry["dtype"] in ("F32", "F64")}


def near_runs(a, b, loss_bound, parameter_bound, statistics_equal=False):
    """Train losses (relative) and last checkpoints (absolute) of two runs."""
    la, lb = ([line["loss"] for line in of("train", read(os.path.join(run, "metrics.jsonl")))] for run in (a, b))
    assert la and len(la) == len(lb), (len(la), len(lb))
    loss = max(abs(x - y) / abs(x) for x, y in zip(la, lb))
    ta, tb = numbers(a), numbers(b)
    assert ta.keys() == tb.keys() and len(ta) > 300
    worst = max(max(map(abs, map(float.__sub__, ta[n].tolist(), tb[n].tolist()))) for n in ta)
    print(f"  losses {loss:.1e} relative, parameters {worst:.1e}")
    assert loss <= loss_bound and worst <= parameter_bound
    if statistics_equal:
        assert all(ta[n] == tb[n] for n in ta if n.endswith(("running_mean", "running_var")))


def near_tables(a, b, bound, without=()):
    """The same images, and numbers within the bound, but for columns whose names have one of these words."""
    assert list(a[0]) == list(b[0]) and [row["image"] for row in a] == [row["image"] for row in b]
    columns = [name for name in a[0] if name != "image" and not any(word in name for word in without)]
    pairs = [(x[name], y[name]) for x, y in zip(a, b) for name in columns]
    assert pairs and all((x == "") == (y == "") for x, y in pairs)
    worst = max(abs(float(x) - float(y)) for x, y in pairs if x)
    print(f"  {len(pairs)} numbers, {worst:.1e} apart")
    assert worst <= bound


def near_pictures(a, b):
    """Two folders of PNGs of the same names: values of 0 to 255 are on average less than one apart."""
    try:
        import numpy
        import PIL.Image
    except ImportError:
        sys.exit(print("  skipped: no numpy and PIL to read pictures with"))
    names, others = (sorted(name for name in os.listdir(folder) if name.endswith(".png")) for folder in (a, b))
    assert names and names == others, (names, others)
    pixels = lambda path: numpy.asarray(PIL.Image.open(path)).astype(float)
    worst = max(abs(pixels(f"{a}/{name}") - pixels(f"{b}/{name}")).mean() for name in names)
    print(f"  {len(names)} pictures, means {worst:.3f} apart")
    assert worst <= 1


if __name__ == "__main__":
    code, *files = sys.argv[1:]
    linecache.cache["CODE"] = len(code), None, code.splitlines(True), "CODE"  # so that a failure shows its line
    exec(compile(code, "CODE", "exec"), globals() | dict(zip(string.ascii_lowercase, map(read, files))))
