#!/usr/bin/env python3
"""Trains the same network on the same pixels with PyTorch and with chexnet-train and compares every loss and parameter.

usage: parity.py --binary build/release/chexnet-train --data ../shared/xray/nih352 [--arch densenet121] [--optimizer adam]
                 [--loss bce | focal | asymmetric] [--precision fp64] [--size 64] [--batch 8] [--steps 20] [--json]
                 [--freeze-until block2 [--freeze-steps 10]] [--head-lr-factor 10] [--layer-decay 0.8]
Needs torch, torchvision, Pillow, safetensors, numpy. Images are decoded by Pillow and resized by PyTorch's uint8 antialias kernel, so
decoder and resize are compared too. Exit 1 when a bound is broken (fp64: losses 1e-8 relative, parameters 1e-7 absolute;
fp32: first loss 1e-6 relative).
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file

FINDINGS = ["Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
            "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"]


def labels_of(table):
    found = {}
    for line in open(table).read().splitlines()[1:]:
        fields = line.split(",")
        found[fields[0]] = [float(f in fields[1].split("|")) for f in FINDINGS]
    return found


def pixels(path, size):
    gray = torch.from_numpy(np.asarray(Image.open(path).convert("L")).copy())[None, None]
    return torch.nn.functional.interpolate(gray, size=(size, size), mode="bilinear", antialias=True)[0]


def asymmetric(logits, labels):
    """Ridnik et al., ICCV 2021, eq. 7: exponents 0 and 4, margin 0.05."""
    p = torch.sigmoid(logits)
    shifted = (p - 0.05).clamp(min=0)
    return -(labels * torch.log(p) + (1 - labels) * shifted**4 * torch.log(1 - shifted)).mean()


def part_of(name):
    """Of the network: 0 is the stem, 1 to 4 its blocks, 5 the classifier."""
    if name.startswith(("classifier.", "fc.")):
        return 5
    block = re.match(r"(?:features\.denseblock|features\.transition|layer)(\d)\.", name)
    return int(block[1]) if block else 4 if name.startswith("features.norm5.") else 0


def freeze(net, parts):
    """The first `parts` of the network: no gradients, and BatchNorms by running statistics, which stay."""
    net.train()
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(part_of(name) >= parts)
    for name, module in net.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.train(part_of(name + ".") >= parts)


PARTS = ["none", "stem", "block1", "block2", "block3", "backbone"]
LOSSES = {"bce": torch.nn.functional.binary_cross_entropy_with_logits, "asymmetric": asymmetric,
          "focal": lambda logits, labels: torchvision.ops.sigmoid_focal_loss(logits, labels, alpha=-1, gamma=2, reduction="mean")}


def main():
    ap = argparse.ArgumentParser()
    for name, kind, default in (("binary", str, "build/release/chexnet-train"), ("data", str, "../shared/xray/nih352"),
                                ("arch", str, "densenet121"), ("optimizer", str, "adam"), ("precision", str, "fp64"),
                                ("size", int, 64), ("batch", int, 8), ("steps", int, 20), ("lr", float, 1e-3),
                                ("decay", float, 0.0), ("seed", int, 0), ("threads", int, 2), ("freeze-steps", int, 0),
                                ("head-lr-factor", float, 1.0), ("layer-decay", float, 1.0)):
        ap.add_argument("--" + name, type=kind, default=default)
    ap.add_argument("--loss", choices=LOSSES, default="bce")
    ap.add_argument("--freeze-until", choices=PARTS, default="none")
    ap.add_argument("--json", action="store_true")
    a = ap.parse_args()
    dtype = torch.float64 if a.precision == "fp64" else torch.float32
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    net = getattr(torchvision.models, a.arch)(weights=None, num_classes=14).to(dtype)
    names = open(os.path.join(a.data, "train_list.txt")).read().split()[: a.batch * (a.freeze_steps or a.steps)]  # an epoch
    with tempfile.TemporaryDirectory() as scratch:
        start, order, run = (os.path.join(scratch, n) for n in ("start.safetensors", "order.txt", "run"))
        save_file({k: v.contiguous().clone() for k, v in net.state_dict().items()}, start,
                  metadata={"chexnet": json.dumps({"findings": FINDINGS})})
        open(order, "w").write("\n".join(names) + "\n")
        sets = {"data.manifest.path": os.path.join(a.data, "Data_Entry_2017.csv"), "data.images": [os.path.join(a.data, "images")],
                "data.train_list": os.path.join(a.data, "train_list.txt"), "data.val_fraction": 0, "data.resize": a.size, "data.crop": a.size,
                "model.arch": a.arch, "model.weights": start, "train.order_file": order, "train.batch": a.batch, "train.max_steps": a.steps,
                "train.epochs": 1e6, "train.optimizer": a.optimizer, "train.lr": a.lr, "train.precision": a.precision, "train.weight_decay": a.decay, "train.loss": a.loss,
                "model.freeze_until": a.freeze_until, "model.freeze_epochs": min(a.freeze_steps, 1),
                "train.head_lr_factor": a.head_lr_factor, "train.layer_decay": a.layer_decay,
                "run.log_every": 1, "launch.threads": a.threads, "launch.device": "cpu", "eval.splits": []}
        empty = os.path.join(scratch, "empty.yaml")
        open(empty, "w").write("run: {name: parity}\n")
        command = [a.binary, "train", empty, "--out", run, "--ranks", "1"]
        for key, value in sets.items():
            command += ["--set", f"{key}={json.dumps(value)}"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL if a.json else None)
        ours = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
        ours_losses = [line["loss"] for line in ours if line["event"] == "train"]
        ours_end = load_file(os.path.join(run, "checkpoints", "last", "model.safetensors"))

    table = labels_of(os.path.join(a.data, "Data_Entry_2017.csv"))
    mean = torch.tensor([0.485, 0.456, 0.406], dtype=dtype).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], dtype=dtype).view(1, 3, 1, 1)
    factors = [a.layer_decay ** (5 - part) for part in range(5)] + [a.head_lr_factor]
    groups = [{"params": [p for n, p in net.named_parameters() if part_of(n) == part and (p.dim() > 1) == is_weight],
               "lr": a.lr * factors[part], "weight_decay": a.decay if is_weight else 0} for part in range(6) for is_weight in (False, True)]
    if a.optimizer == "sgd":
        optimizer = torch.optim.SGD(groups, lr=a.lr, momentum=0.9)
    else:
        optimizer = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[a.optimizer](groups, lr=a.lr)
    criterion = LOSSES[a.loss]
    losses = []
    for step in range(a.steps):
        freeze(net, 0 if step >= a.freeze_steps > 0 else PARTS.index(a.freeze_until))
        chosen = [names[i % len(names)] for i in range(step * a.batch, (step + 1) * a.batch)]
        x = torch.stack([pixels(os.path.join(a.data, "images", n), a.size) for n in chosen]).to(dtype) / 255
        x = (x.expand(-1, 3, -1, -1) - mean) / std
        if a.precision == "fp32":
            x = x.contiguous(memory_format=torch.channels_last)
        y = torch.tensor([table[n] for n in chosen], dtype=dtype)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    relative = [abs(o - p) / abs(p) for o, p in zip(ours_losses, losses)]
    state = net.state_dict()
    parameters = max(float((ours_end[k].double() - v.double()).abs().max()) for k, v in state.items() if not k.endswith("num_batches_tracked"))
    result = {"arch": a.arch, "optimizer": a.optimizer, "loss": a.loss, "precision": a.precision, "steps": a.steps, "first_loss_rel": relative[0],
              "worst_loss_rel": max(relative), "worst_parameter_abs": parameters, "last_loss": losses[-1]}
    good = len(ours_losses) == a.steps and set(ours_end) == set(state) and (
        max(relative) < 1e-8 and parameters < 1e-7 if a.precision == "fp64" else relative[0] < 1e-6)
    print(json.dumps(result))
    sys.exit(0 if good else 1)


main()
