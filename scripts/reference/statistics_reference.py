#!/usr/bin/env python3
"""What the tests of src/eval hold, computed by scikit-learn, SciPy and other published implementations.
usage: statistics_reference.py figures      prints the values of tests/eval/*_test.cpp (needs scikit-learn, MLstatkit)"""
import sys

import numpy as np
from MLstatkit import Delong_test
from scipy.stats import binomtest, norm
from sklearn.metrics import average_precision_score, roc_auc_score


def made_up_cases():
    """tests/eval/made_up_cases.hpp"""
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


def figures():
    y, a, b, patients = made_up_cases()
    for hits, cases in ((0, 10), (10, 10), (3, 7), (81, 263), (999, 1000)):
        ci = binomtest(hits, cases).proportion_ci(method="wilson")
        print("wilson", hits, cases, ci.low, ci.high)
    for name, s in (("a", a), ("b", b), ("equal", np.full(400, 0.5))):
        print("auroc", name, roc_auc_score(y, s), "average precision", average_precision_score(y, s))
    print("delong variance of a, of a - b, p:", *delong(y, a, b))
    print("by patient: variance of a", clustered_variance(y, [(1, a)], patients), "of a - b",
          clustered_variance(y, [(1, a), (-1, b)], patients))


if __name__ == "__main__":
    {"figures": figures}[sys.argv[1]]()
