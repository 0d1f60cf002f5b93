#!/usr/bin/env python3
"""Trains the parity cases of tests/support/parity_run.hpp with PyTorch in fp64 and stores losses and a digest of every tensor.

usage: make_parity_dump.py build/release/test_torch tests/train/parity
Needs torch, torchvision, safetensors.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
import torchvision
from safetensors.torch import load_file

program, out = sys.argv[1:3]
os.makedirs(out, exist_ok=True)
with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([program, "[.dump]"], check=True, env=dict(os.environ, CHEXNET_DUMP=scratch), stdout=subprocess.DEVNULL)
    cases = json.load(open(os.path.join(scratch, "cases.json")))
    batches = load_file(os.path.join(scratch, "batches.safetensors"))
    starts = {c["arch"]: load_file(os.path.join(scratch, c["arch"] + ".safetensors")) for c in cases}
mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(1, 3, 1, 1)
for case in cases:
    net = getattr(torchvision.models, case["arch"])(weights=None, num_classes=14).double().train()
    net.load_state_dict(starts[case["arch"]], strict=True)
    make = {"adam": lambda p: torch.optim.Adam(p, lr=case["lr"]), "sgd": lambda p: torch.optim.SGD(p, lr=case["lr"], momentum=0.9)}
    optimizer = make[case["optimizer"]](net.parameters())
    losses = []
    for step in range(len(batches) // 2):
        x = batches[f"images/{step}"].double() / 255
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net((x.expand(-1, 3, -1, -1) - mean) / std), batches[f"labels/{step}"].double())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tensors = {k: [v.flatten()[-1].item(), v.double().sum().item()] for k, v in net.state_dict().items()}
    with open(os.path.join(out, f"{case['arch']}-{case['optimizer']}.json"), "w") as f:
        json.dump({"torch": torch.__version__, "losses": losses, "tensors": tensors}, f)
    print(case, losses[0], losses[-1])
