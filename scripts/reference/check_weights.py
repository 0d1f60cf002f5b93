#!/usr/bin/env python3
"""Loads what `chexnet-train export --weights` wrote into the library it was written for, and compares the drawings' probabilities.

usage: check_weights.py DIR torchvision|torchxrayvision

The names and shapes must be the library's own (load_state_dict, strict). torchvision's network must agree within the tolerance of
vectors.json; TorchXRayVision's sees another gray around the picture, so its difference is printed and must only be small (0.05).
"""
import json
import os
import sys

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_export import batch_of, check_sums, read_json  # noqa: E402


def network(library, arch, findings):
    if library == "torchvision":
        import torchvision
        return torchvision.models.get_model(arch, weights=None, num_classes=findings)
    import torchxrayvision
    if arch != "densenet121":
        import torchvision
        net = torchvision.models.get_model(arch, weights=None, num_classes=findings)
        net.conv1 = torch.nn.Conv2d(1, 64, kernel_size=7, stride=2, padding=3, bias=False)  # as its ResNet.model
        return net
    return torchxrayvision.models.DenseNet(num_classes=findings, in_channels=1)


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("torchvision", "torchxrayvision"):
        sys.exit(__doc__)
    folder, library = sys.argv[1:]
    check_sums(folder)
    weights = os.path.join(folder, "weights.safetensors")
    with safe_open(weights, "pt") as file:
        arch = json.loads(file.metadata()["chexnet"])["arch"]
    preprocessing, about = read_json(folder, "preprocessing.json"), read_json(folder, "vectors.json")
    findings = read_json(folder, "labels.json")["findings"]
    net = network(library, arch, len(findings))
    net.load_state_dict(load_file(weights))
    pixels = [np.asarray(Image.open(os.path.join(folder, v["input"]))) for v in about["vectors"]]
    batch = batch_of(pixels, preprocessing)
    with torch.no_grad():
        ours = torch.sigmoid(net.eval()(torch.from_numpy(batch))).double().numpy()
    wanted = np.array([[v["probabilities"][f] for f in findings] for v in about["vectors"]])
    worst = float(np.abs(ours - wanted).max())
    print(json.dumps({"library": library, "arch": arch, "vectors": len(pixels), "worst_difference": worst}))
    sys.exit(0 if worst <= (about["tolerance"] if library == "torchvision" else 0.05) else 1)


if __name__ == "__main__":
    main()
