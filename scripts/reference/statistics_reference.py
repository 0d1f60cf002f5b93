#!/usr/bin/env python3
"""What the tests of src/eval hold, computed by scikit-learn, SciPy and other published implementations.
usage: statistics_reference.py figures          prints the values of tests/eval/*_test.cpp
       statistics_reference.py compare BINARY   evaluate --predictions on 22,433 x 14 scores with ties; bounds 1e-12, DeLong 1e-9
needs: pip install scikit-learn scipy MLstatkit"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from MLstatkit import Delong_test
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, roc_auc_score, roc_curve


def synthetic_cases():
    """tests/eval/synthetic_cases.hpp"""
    i = np.arange(400)
    label = ((i * 7 + i // 13) % 10 < 3).astype(int)
    a = ((i * 37) % 101 + 40 * label) / 141.0
    b = ((i * 53 + i // 7) % 89 + 25 * label) / 114.0
    return label, a, b, i * i % 367 // 3


def delong(y, a, b):
    """(variance of a, variance of the difference, p) by MLstatkit, which takes the difference as b - a."""
    z, p, ci_a, _, auc_a, auc_b, _ = Delong_test(y, a, b)
    return ((ci_a[1] - ci_a[0]) / 2 / norm.ppf(0.975)) ** 2, ((auc_b - auc_a) / z) ** 2, p


def clustered_variance(y, scores, patients):
    """Obuchowski 1997 as its paper defines it: all pairs, then sums by patient."""
    wins = lambda s: (s[y == 1][:, None] > s[y == 0]) + 0.5 * (s[y == 1][:, None] == s[y == 0])
    w = sum(sign * wins(s) for sign, s in scores)
    auc, m, n = w.mean(), *w.shape
    ids = np.unique(patients)
    tenth = np.array([(w.mean(1) - auc)[patients[y == 1] == i].sum() for i in ids])
    first = np.array([(w.mean(0) - auc)[patients[y == 0] == i].sum() for i in ids])
    i10, i01, i = len(np.unique(patients[y == 1])), len(np.unique(patients[y == 0])), len(ids)
    return (i10 / (i10 - 1) * (tenth**2).sum() / m**2 + i01 / (i01 - 1) * (first**2).sum() / n**2
            + 2 * i / (i - 1) * (tenth * first).sum() / (m * n))


def bins_of(p, strategy, bins=10):
    """The bin of each case as calibration_curve forms them."""
    shares = np.linspace(0, 1, bins + 1)
    edges = shares if strategy == "uniform" else np.percentile(p, shares * 100)
    return np.searchsorted(edges[1:-1], p)


def calibration_error(y, p, strategy, bins=10):
    rate, mean = calibration_curve(y, p, n_bins=bins, strategy=strategy)
    counts = np.bincount(bins_of(p, strategy, bins), minlength=bins)
    return (np.abs(rate - mean) * counts[counts > 0]).sum() / len(y)


def targets(y):
    """What calibration is fitted to: Platt's for positives and negatives."""
    positives, negatives = (y == 1).sum(), (y == 0).sum()
    return np.where(y == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def temperature(y, p):
    z = logit(np.clip(p, 1e-15, 1 - 1e-15))
    return 1 / brentq(lambda slope: ((expit(slope * z) - targets(y)) * z).sum(), 0.01, 100, xtol=1e-16, rtol=1e-15)


def youden_threshold(y, s):
    fpr, tpr, thresholds = roc_curve(y, s, drop_intermediate=False)
    return thresholds[np.argmax(tpr - fpr)]


def figures():
    y, a, b, patients = synthetic_cases()
    for hits, cases in ((0, 10), (10, 10), (3, 7), (81, 263), (999, 1000)):
        ci = binomtest(hits, cases).proportion_ci(method="wilson")
        print("wilson", hits, cases, ci.low, ci.high)
    for name, s in (("a", a), ("b", b), ("equal", np.full(400, 0.5))):
        print("auroc", name, roc_auc_score(y, s), "average precision", average_precision_score(y, s))
    print("delong variance of a, of a - b, p:", *delong(y, a, b))
    print("by patient: variance of a", clustered_variance(y, [(1, a)], patients), "of a - b",
          clustered_variance(y, [(1, a), (-1, b)], patients))
    for name, s in (("a", a), ("b", b)):
        print("brier", name, brier_score_loss(y, s), "error in equal widths", calibration_error(y, s, "uniform"),
              "in equal masses", calibration_error(y, s, "quantile"), "temperature", temperature(y, s))
    print("bins", *calibration_curve(y, a, n_bins=10), np.bincount(bins_of(a, "uniform")))
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(a, targets(y))
    for p in (0.0, 0.2855, 0.4, 0.71, 0.7145, 0.72, 1.0):
        print("isotonic", p, isotonic.predict([p])[0])
    fpr, tpr, thresholds = roc_curve(y, a, drop_intermediate=False)
    print("thresholds: youden", youden_threshold(y, a), "sensitivity 0.9", thresholds[np.argmax(tpr >= 0.9)],
          "specificity 0.9, of positives", thresholds[(1 - fpr >= 0.9) & np.isin(thresholds, a[y == 1])][-1])
    print("isotonic points", len(isotonic.X_thresholds_), isotonic.X_thresholds_, isotonic.y_thresholds_)
    print("f1 at 0.5", f1_score(y, a >= 0.5), "counts", *np.bincount(2 * y + (a >= 0.5)))


def compare(binary):
    rng = np.random.default_rng(1)
    labels = (rng.random((22433, 14)) < np.linspace(0.002, 0.3, 14)).astype(int)
    scores = np.round(expit(rng.normal(labels - 1.0, 1.5)), 3)
    names = [f"finding {k}" for k in range(14)]
    header = ["image"] + ["label:" + n for n in names] + ["prob:" + n for n in names]
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "p.csv")
        with open(path, "w") as f:
            f.write(",".join(header) + "\n")
            for i, (l, s) in enumerate(zip(labels.tolist(), scores.tolist())):
                f.write(",".join([f"i{i}", *map(str, l), *map(repr, s)]) + "\n")
        start = time.time()
        out = subprocess.run([binary, "evaluate", "--predictions", path, "--json"], check=True, stdout=subprocess.PIPE).stdout
        seconds = time.time() - start
    worst = {}

    def differ(name, ours, theirs):
        worst[name] = max(worst.get(name, 0), abs(ours - theirs))

    for k, name in enumerate(names):
        y, s, ours = labels[:, k], scores[:, k], json.loads(out)["findings"][name]
        other = np.round(rng.random(len(s)), 3)
        auc, half = roc_auc_score(y, s), norm.ppf(0.975) * np.sqrt(delong(y, s, other)[0])
        differ("auroc", ours["auroc"], auc)
        differ("average precision", ours["average_precision"], average_precision_score(y, s))
        differ("brier", ours["brier"], brier_score_loss(y, s))
        differ("calibration error", ours["calibration_error"]["equal_widths"], calibration_error(y, s, "uniform"))
        differ("calibration error", ours["calibration_error"]["equal_masses"], calibration_error(y, s, "quantile"))
        for end, sign in zip(ours["auroc_interval_delong"], (-1, 1)):
            differ("delong", end, expit(logit(auc) + sign * half / (auc * (1 - auc))))
    print(json.dumps({"worst": worst, "seconds": round(seconds, 2)}))
    return all(v <= (1e-9 if k == "delong" else 1e-12) for k, v in worst.items())


if __name__ == "__main__":
    if sys.argv[1] == "figures":
        figures()
    else:
        sys.exit(0 if compare(sys.argv[2]) else 1)
