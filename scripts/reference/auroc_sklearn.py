#!/usr/bin/env python3
"""evaluate --predictions against scikit-learn on 20,000 x 14 scores with ties. usage: auroc_sklearn.py BINARY; bound 1e-12."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.metrics import roc_auc_score

rng = np.random.default_rng(1)
labels = (rng.random((20000, 14)) < np.linspace(0.001, 0.5, 14)).astype(int)
scores = np.round(1 / (1 + np.exp(-rng.normal(labels, 1.5))), 3)
names = [f"finding {k}" for k in range(14)]
with tempfile.TemporaryDirectory() as scratch:
    path = os.path.join(scratch, "p.csv")
    with open(path, "w") as f:
        f.write("image," + ",".join(["label:" + n for n in names] + ["prob:" + n for n in names]) + "\n")
        for i in range(len(labels)):
            f.write(f"i{i}," + ",".join(map(str, labels[i])) + "," + ",".join(map(repr, scores[i].tolist())) + "\n")
    result = json.loads(subprocess.run([sys.argv[1], "evaluate", "--predictions", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
worst = max(abs(result["auroc"][n] - roc_auc_score(labels[:, k], scores[:, k])) for k, n in enumerate(names))
print(json.dumps({"images": result["images"], "worst_difference": worst}))
sys.exit(0 if worst <= 1e-12 else 1)
