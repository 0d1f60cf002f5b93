#!/usr/bin/env python3
"""The learning reference: torchvision's network trained by PyTorch as configs/nih352_learning.yaml trains ours, in one process.

usage: learning_pytorch.py NIH352 OUT [--lr 1e-3] [--seed 1] [--epochs 15] [--max-steps 0]
Writes OUT/metrics.jsonl with a "val" line per epoch, as the program does, scored on the 230 test images. Needs torch, torchvision, Pillow.

Alike: images (gray, torchvision's uint8 antialias resize to 72 for training and 64 for scoring), a random 64 crop, a flip, ImageNet's mean
and standard deviation, torchvision's initial weights, Adam, batches of 32 that span the end of an epoch, the number of steps, fp32.
Not alike: the random numbers, so one seed here and there are two independent runs.
"""
import argparse
import csv
import itertools
import json
import math
import os

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms.v2 import functional as F

FINDINGS = ("Atelectasis Cardiomegaly Effusion Infiltration Mass Nodule Pneumonia Pneumothorax Consolidation Edema Emphysema Fibrosis "
            "Pleural_Thickening Hernia").split()
SIZE, RESIZE, BATCH = 64, 72, 32
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def load_split(folder, list_name, side):
    """uint8 [N, 1, side, side] and float [N, 14]."""
    with open(os.path.join(folder, "Data_Entry_2017.csv")) as table:
        labels = {row["Image Index"]: set(row["Finding Labels"].split("|")) for row in csv.DictReader(table)}
    with open(os.path.join(folder, list_name)) as names_file:
        names = names_file.read().split()
    images = torch.empty(len(names), 1, side, side, dtype=torch.uint8)
    for i, name in enumerate(names):
        gray = np.asarray(Image.open(os.path.join(folder, "images", name)).convert("L")).copy()
        images[i] = F.resize(torch.from_numpy(gray)[None], [side, side], antialias=True)
    return images, torch.tensor([[float(f in labels[n]) for f in FINDINGS] for n in names])


def network_input(pixels):
    x = ((pixels.float() / 255).expand(-1, 3, -1, -1) - MEAN) / STD
    return x.contiguous(memory_format=torch.channels_last)


def endless_order(count, random):
    """One permutation after another."""
    while True:
        yield from torch.randperm(count, generator=random).tolist()


def augmented(image, random):
    y, x = torch.randint(0, RESIZE - SIZE + 1, (2,), generator=random).tolist()
    crop = image[:, y:y + SIZE, x:x + SIZE]
    return crop.flip(-1) if torch.rand(1, generator=random) < 0.5 else crop


def auroc(truth, scores):
    """Mann-Whitney with ties at their middle rank."""
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    positives = truth.sum()
    negatives = len(truth) - positives
    if positives == 0 or negatives == 0:
        return None
    return float((rank[truth > 0].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def score(net, images, labels):
    net.eval()
    with torch.no_grad():
        logits = torch.cat([net(network_input(part)) for part in images.split(BATCH)])
    truth, scores = labels.numpy(), logits.double().numpy()
    by_finding = [auroc(truth[:, k], scores[:, k]) for k in range(len(FINDINGS))]
    frequent = [a for k, a in enumerate(by_finding) if truth[:, k].sum() >= 10]
    return {"loss": float(torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)),
            "mean_auroc": sum(frequent) / len(frequent),
            "any_finding_auroc_mean_logit": auroc(truth.max(1), scores.mean(1)),
            "auroc": dict(zip(FINDINGS, by_finding))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--max-steps", type=int, default=0, help="stop early, to see that it works")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    random = torch.Generator().manual_seed(1000 + options.seed)
    images, labels = load_split(options.folder, "train_list.txt", RESIZE)
    test_images, test_labels = load_split(options.folder, "test_list.txt", SIZE)
    net = torchvision.models.densenet121(weights=None, num_classes=len(FINDINGS)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
    criterion = torch.nn.BCEWithLogitsLoss()

    steps = math.ceil(options.epochs * len(images) / BATCH)
    order = endless_order(len(images), random)
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "metrics.jsonl"), "w") as metrics:
        epoch = 0
        for step in range(1, min(steps, options.max_steps or steps) + 1):
            net.train()
            rows = list(itertools.islice(order, BATCH))
            x = torch.stack([augmented(images[row], random) for row in rows])
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(net(network_input(x)), labels[rows])
            loss.backward()
            optimizer.step()
            if step * BATCH // len(images) > epoch:
                epoch = step * BATCH // len(images)
                line = {"event": "val", "step": step, "epoch": epoch, **score(net, test_images, test_labels)}
                print(json.dumps(line), file=metrics, flush=True)
    print(f"learning_pytorch: torch {torch.__version__}, lr {options.lr:g}, seed {options.seed}: {step} steps, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
