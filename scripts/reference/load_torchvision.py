#!/usr/bin/env python3
"""Loads a checkpoint of chexnet-train into torchvision, for people who go back, and shows how to predict with it.

usage: load_torchvision.py MODEL.safetensors [IMAGE...]
As a module: net, description = load("runs/x/checkpoints/best/model.safetensors"); net(preprocess(path, description)) gives logits.
"""
import json
import sys

import numpy as np
import torch
import torchvision
from PIL import Image, ImageOps
from safetensors import safe_open


def load(path):
    with safe_open(path, "pt") as f:
        description = json.loads(f.metadata()["chexnet"])
        state = {k: f.get_tensor(k) for k in f.keys()}
    net = torchvision.models.get_model(description["arch"], weights=None, num_classes=len(description["findings"]))
    net.load_state_dict(state, strict=True)
    return net.eval(), description


def gray_pixels(path):
    """uint8 [height, width] as the program decodes them: 16-bit samples divided by 257 (Pillow would cut them off at 255), alpha
    dropped, color by ITU-R 601-2 luma, a JPEG turned upright by its EXIF orientation."""
    image = Image.open(path)
    if image.format == "JPEG":
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        return ((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8)
    if image.mode == "P":
        image = image.convert("RGB")
    return np.array(image.convert("L"))


def preprocess(path, description):
    """The pixels of evaluation: gray, resized by PyTorch's uint8 antialias kernel, center crop, normalized."""
    p = description["preprocessing"]
    if p["jpeg"] != "decoded at full size" and str(path).lower().endswith((".jpg", ".jpeg")):
        print(f"{path}: the network was trained with JPEGs scaled in their DCT (data.jpeg_scale: auto), which Pillow does not "
              "repeat: large ones get other pixels here", file=sys.stderr)
    if p["resize_kind"] != "antialias":
        raise SystemExit("this checkpoint was trained with resize_kind area, which PyTorch does not have")
    size, crop = p["eval_resize"] or p["resize"], p["crop"]
    gray = torch.from_numpy(gray_pixels(path))[None, None]
    x = torch.nn.functional.interpolate(gray, size=(size, size), mode="bilinear", antialias=True).float() / 255
    if p.get("eval_crop_begin", (size - crop) // 2) != int(round((size - crop) / 2.0)):
        raise SystemExit("this checkpoint was evaluated with another center crop than torchvision's")
    x = torchvision.transforms.functional.center_crop(x, [crop, crop]).expand(-1, 3, -1, -1)
    return (x - torch.tensor(p["mean"]).view(1, 3, 1, 1)) / torch.tensor(p["std"]).view(1, 3, 1, 1)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    model, about = load(sys.argv[1])
    print(f"{about['arch']}, findings {', '.join(about['findings'])}. Research use, not a medical device.")
    for name in sys.argv[2:]:
        with torch.no_grad():
            print(name, [round(v, 4) for v in torch.sigmoid(model(preprocess(name, about)))[0].tolist()])
