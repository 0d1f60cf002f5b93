#!/usr/bin/env python3
"""The table of scripts/reference/recipes: mean test AUROC (ten findings) per seed, mean, range, and the difference from the plain recipe.

usage: recipes_table.py FOLDER      with runs RECIPE-SEED, of which plain-SEED is compared with
A run's score is that of learning_compare.py: the mean of its last five epochs. "helps" or "hurts" is said where every seed is above or
below all seeds of the plain recipe.
"""
import glob
import os
import statistics
import sys

from learning_compare import run_score

KEY = "mean_auroc"
EPOCHS = 15  # of configs/nih352_learning.yaml


def is_whole(path):
    with open(path, encoding="utf-8") as file:
        return sum('"event":"val"' in line for line in file) == EPOCHS


def scores_by_recipe(folder):
    scores = {}
    for path in sorted(glob.glob(os.path.join(folder, "*-*", "metrics.jsonl"))):
        recipe, seed = os.path.basename(os.path.dirname(path)).rsplit("-", 1)
        if not is_whole(path):
            print(f"recipes_table: {os.path.dirname(path)} is unfinished, left out", file=sys.stderr)
            continue
        scores.setdefault(recipe, {})[int(seed)] = run_score(path, KEY)
    return scores


def effect(values, plain):
    if min(values) > max(plain):
        return "helps"
    return "hurts" if max(values) < min(plain) else "within the seeds' range"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    scores = scores_by_recipe(sys.argv[1])
    if "plain" not in scores:
        sys.exit(f"recipes_table: no plain runs in {sys.argv[1]}")
    plain = list(scores["plain"].values())
    seeds = sorted({seed for by_seed in scores.values() for seed in by_seed})
    print(f"| recipe | {', '.join(f'seed {seed}' for seed in seeds)} | mean | range | difference | |\n|---|---|---|---|---|---|")
    for recipe, by_seed in sorted(scores.items(), key=lambda item: -statistics.mean(item[1].values())):
        values = list(by_seed.values())
        figures = ", ".join(f"{by_seed[seed]:.3f}" if seed in by_seed else "-" for seed in seeds)
        difference = statistics.mean(values) - statistics.mean(plain)
        told = "" if recipe == "plain" else f"{difference:+.3f} | {effect(values, plain)}"
        print(f"| {recipe} | {figures} | {statistics.mean(values):.3f} | {min(values):.3f} to {max(values):.3f} | {told or ' | '} |")


if __name__ == "__main__":
    main()
