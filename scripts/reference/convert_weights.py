#!/usr/bin/env python3
"""Converts PyTorch weights to the .safetensors that model.weights reads, with torchvision's names.

usage: convert_weights.py IN.pth OUT.safetensors [FINDINGS]     a state_dict or a checkpoint that holds one under "state_dict" or "model"
       convert_weights.py torchvision:densenet121 OUT.safetensors   the pretrained weights of torchvision (downloads)

FINDINGS names the classifier's outputs in their order, e.g. Atelectasis,Cardiomegaly; without them a classifier starts afresh.

Understands torchvision's own files, its legacy DenseNet keys (denselayer1.norm.1.weight), DataParallel's "module." and the
CheXNet reproductions' "densenet121." prefix and "classifier.0". Files are read with weights_only: no code in them runs.
"""
import json
import os
import re
import sys


def renamed(key):
    key = re.sub(r"^(module\.|model\.|densenet\d+\.|resnet\d+\.)+", "", key)
    key = re.sub(r"(denselayer\d+\.(?:norm|relu|conv))\.([12])\.", r"\1\2.", key)
    return re.sub(r"^(classifier|fc)\.0\.", r"\1.", key)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    source, out = sys.argv[1:3]
    if not source.startswith("torchvision:") and not os.path.isfile(source):
        sys.exit(f"convert_weights: {source}: no such file")
    try:  # after the checks that need neither
        import torch
        from safetensors.torch import save_file
    except ImportError as e:
        sys.exit(f"convert_weights: {e}. It needs a Python with torch and safetensors: pip install torch safetensors")
    metadata = {"format": "pt"}
    if len(sys.argv) == 4:
        metadata["chexnet"] = json.dumps({"findings": sys.argv[3].split(",")})
    if source.startswith("torchvision:"):
        import torchvision
        state = torchvision.models.get_model(source.split(":")[1], weights="DEFAULT").state_dict()
    else:
        state = torch.load(source, map_location="cpu", weights_only=True)
        for inner in ("state_dict", "model"):
            if inner in state and isinstance(state[inner], dict):
                state = state[inner]
    tensors = {}
    for key, value in state.items():
        if not isinstance(value, torch.Tensor):
            continue
        name = renamed(key)
        if name in tensors:
            sys.exit(f"convert_weights: two tensors would be called {name}: is this one network?")
        tensors[name] = value.contiguous().clone()
    if not tensors:
        sys.exit(f"convert_weights: no tensors in {source}: is it a state_dict?")
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    save_file(tensors, out, metadata=metadata)
    print(f"{out}: {len(tensors)} tensors, {sum(v.numel() for v in tensors.values()):,} numbers")


main()
