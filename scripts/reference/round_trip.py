#!/usr/bin/env python3
"""The whole way file -> decode -> resize -> normalize -> logits, ours against Pillow and torchvision, on the images of a split.

usage: round_trip.py BINARY RUN IMAGES [SPLIT]      bound: 1e-4 on the logits; and auroc against scikit-learn
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from load_torchvision import load, preprocess  # noqa: E402

binary, run, images = sys.argv[1:4]
split = sys.argv[4] if len(sys.argv) > 4 else "val"
checkpoint = os.path.join(run, "checkpoints", "last")
with tempfile.TemporaryDirectory() as scratch:
    table = os.path.join(scratch, "p.csv")
    result = json.loads(subprocess.run([binary, "evaluate", checkpoint, "--split", split, "--out", table, "--json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    rows = list(csv.DictReader(open(table)))
net, about = load(os.path.join(checkpoint, "model.safetensors"))
worst = 0.0
with torch.no_grad():
    for at in range(0, len(rows), 46):
        part = rows[at:at + 46]
        logits = net(torch.cat([preprocess(os.path.join(images, r["image"]), about) for r in part])).double()
        ours = torch.tensor([[float(r["prob:" + f]) for f in about["findings"]] for r in part], dtype=torch.float64)
        worst = max(worst, float((torch.log(ours) - torch.log1p(-ours) - logits).abs().max()))
auroc = 0.0
for f in about["findings"]:
    y = np.array([float(r["label:" + f]) for r in rows])
    if 0 < y.sum() < len(y):
        auroc = max(auroc, abs(roc_auc_score(y, [float(r["prob:" + f]) for r in rows]) - result["auroc"][f]))
print(json.dumps({"images": len(rows), "worst_logit_difference": worst, "worst_auroc_difference": auroc}))
sys.exit(0 if worst <= 1e-4 and auroc <= 1e-12 else 1)
