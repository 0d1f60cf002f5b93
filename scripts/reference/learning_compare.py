#!/usr/bin/env python3
"""Compares AUROC over seeds of ours and PyTorch's: number of runs, mean, standard deviation, difference with its 95 % interval.

usage: learning_compare.py FOLDER      the runs of scripts/reference/learning: ours-LR-SEED and pytorch-LR-SEED
       learning_compare.py --recorded  the table of docs/lab/2026-11-27-learning.md, from the figures below
A run's score is the mean over its last five epochs. Exit 1 when the mean of ours is below PyTorch's mean - 2 standard errors of PyTorch's
seeds. Seeds are not paired: the programs draw other weights and orders from the same number.
"""
import glob
import json
import math
import os
import statistics
import sys

RATES = ("1e-3", "3e-4")
# Fields of a "val" line by how their names begin; what follows says how "any finding" is scored.
SCORES = {"mean_auroc": "ten findings", "any_finding_auroc": "any finding"}
# Ten findings, seeds 1, 2, 3 of ours on two ranks. Of PyTorch's only mean and, at 1e-3, smallest and largest were kept.
RECORDED = {"1e-3": {"CPU engine": [0.709, 0.716, 0.697], "ATen": [0.700, 0.703, 0.702]},
            "3e-4": {"CPU engine": [0.725, 0.705, 0.713], "ATen": [0.729, 0.702, 0.723]}}
PYTORCH_MEAN = {"1e-3": 0.702, "3e-4": 0.713}
# Three seeds, so the one between is 3 x 0.702 - 0.694 - 0.709.
PYTORCH_SEEDS = {"1e-3": [0.694, 0.703, 0.709]}
PYTORCH_RUNS = 3

# Student's t, 97.5 %, for 1 to 30 degrees of freedom.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
     2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def t_quantile(freedom):
    return T[freedom - 1] if freedom <= len(T) else 1.96 + 2.4 / freedom


def pooled_sd(samples):
    """Of samples of one spread but different means; with its degrees of freedom."""
    freedom = sum(len(s) - 1 for s in samples)
    return math.sqrt(sum((len(s) - 1) * statistics.variance(s) for s in samples) / freedom), freedom


def half_width(sd, freedom, runs, other_runs):
    """Of the 95 % interval of the difference of two means."""
    return t_quantile(freedom) * sd * math.sqrt(1 / runs + 1 / other_runs)


def text_of(values):
    return f"n {len(values)}, mean {statistics.mean(values):.4f}, sd {statistics.stdev(values):.4f}"


def lower_bound(mean, sd, runs):
    return mean - 2 * sd / math.sqrt(runs)


def recorded_sd():
    return pooled_sd([seeds for by_engine in RECORDED.values() for seeds in by_engine.values()])


def print_recorded():
    sd, freedom = recorded_sd()
    print(f"pooled standard deviation of the four triples of ours: {sd:.4f} with {freedom} degrees of freedom")
    for rate in RATES:
        for engine, seeds in RECORDED[rate].items():
            difference = statistics.mean(seeds) - PYTORCH_MEAN[rate]
            width = half_width(sd, freedom, len(seeds), PYTORCH_RUNS)
            print(f"{rate} {engine}: {text_of(seeds)}; PyTorch {PYTORCH_MEAN[rate]:.3f}; difference {difference:+.3f} +- {width:.3f} "
                  f"= {difference - width:+.3f} to {difference + width:+.3f}")


def value_of(line, begin):
    return next(value for name, value in line.items() if name.startswith(begin))


def run_score(path, key):
    with open(path) as lines:
        epochs = [line for line in map(json.loads, lines) if line["event"] == "val"]
    assert len(epochs) == 15, (path, len(epochs))
    return statistics.mean(value_of(line, key) for line in epochs[-5:])


def scores_of(folder, program, rate, key):
    paths = sorted(glob.glob(os.path.join(folder, f"{program}-{rate}-*", "metrics.jsonl")))
    return [run_score(path, key) for path in paths]


def bound_without_pytorch(rate, key):
    """From what was recorded; None where nothing of its spread is known."""
    if key != "mean_auroc":
        return None
    seeds = PYTORCH_SEEDS.get(rate)
    sd = statistics.stdev(seeds) if seeds else recorded_sd()[0]
    return lower_bound(PYTORCH_MEAN[rate], sd, PYTORCH_RUNS)


def compare(folder, rate, key):
    """Prints one line; False when ours is below the bound."""
    ours = scores_of(folder, "ours", rate, key)
    theirs = scores_of(folder, "pytorch", rate, key)
    print(f"{rate} {SCORES[key]}: ours {text_of(ours)}", end="")
    if len(theirs) > 1:
        sd, freedom = pooled_sd([ours, theirs])
        difference = statistics.mean(ours) - statistics.mean(theirs)
        width = half_width(sd, freedom, len(ours), len(theirs))
        bound = lower_bound(statistics.mean(theirs), statistics.stdev(theirs), len(theirs))
        print(f"; PyTorch {text_of(theirs)}; difference {difference:+.4f}, 95 % {difference - width:+.4f} to {difference + width:+.4f}", end="")
    else:
        bound = bound_without_pytorch(rate, key)
    print(f"; at least {bound:.4f}" if bound is not None else "; no bound: PyTorch's spread was not recorded")
    return bound is None or statistics.mean(ours) >= bound


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--recorded":
        print_recorded()
        return
    good = [compare(sys.argv[1], rate, key) for rate in RATES for key in SCORES]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
