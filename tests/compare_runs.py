"""usage: compare_runs.py RUN_A RUN_B LOSS_REL PARAMETER_ABS [--statistics-equal]: train losses and last checkpoints of two runs.

Needs nothing but Python: safetensors are a JSON header and raw little-endian numbers.
"""
import array
import json
import os
import struct
import sys


def tensors(run):
    with open(os.path.join(run, "checkpoints/last/model.safetensors"), "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in ("F32", "F64"):
            values = array.array("f" if entry["dtype"] == "F32" else "d")
            values.frombytes(data[slice(*entry["data_offsets"])])
            out[name] = values
    return out


def losses(run):
    lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    return [line["loss"] for line in lines if line["event"] == "train"]


a, b = sys.argv[1:3]
loss_bound, parameter_bound = float(sys.argv[3]), float(sys.argv[4])
la, lb = losses(a), losses(b)
assert la and len(la) == len(lb), (len(la), len(lb))
loss = max(abs(x - y) / abs(x) for x, y in zip(la, lb))
ta, tb = tensors(a), tensors(b)
assert ta.keys() == tb.keys() and len(ta) > 300
worst = max(max(map(abs, map(float.__sub__, ta[n].tolist(), tb[n].tolist()))) for n in ta)
print(f"  losses {loss:.1e} relative, parameters {worst:.1e}")
good = loss <= loss_bound and worst <= parameter_bound
if "--statistics-equal" in sys.argv:
    good = good and all(ta[n] == tb[n] for n in ta if n.endswith(("running_mean", "running_var")))
sys.exit(0 if good else 1)
