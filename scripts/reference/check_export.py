#!/usr/bin/env python3
"""Whether an exported network does elsewhere what it does here: the acceptance test of a folder that `chexnet-train export` wrote.

usage: check_export.py DIR [--runtime onnxruntime|openvino|onnx]... [--predicted CSV --images FOLDER]

Checks SHA256SUMS, then by each runtime (default: onnxruntime) the probabilities of the drawings in vectors.json. `onnx` is the
format's own checker. With --predicted, a CSV of `chexnet-train predict --set train.precision=fp32`, its images too. Needs numpy and
Pillow. Prints one JSON line; exit 1 when a probability differs by more than the tolerance of vectors.json, or a pixel at all.
"""
import argparse
import csv
import hashlib
import json
import os
import sys

import numpy as np
from PIL import Image

from antialias_resize import resize


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def check_sums(folder):
    with open(os.path.join(folder, "SHA256SUMS"), encoding="utf-8") as file:
        listed = [line.rstrip("\n").split("  ", 1) for line in file]
    for wanted, name in listed:
        with open(os.path.join(folder, name), "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != wanted:
                sys.exit(f"check_export: {name} is not the file that was exported")
    return len(listed)


def network_pixels(path, before):
    """uint8 [side, side]: the picture as preprocessing.json says."""
    if before["resize_kind"] != "antialias":
        sys.exit("check_export: resizes by antialias alone, not by resize_kind area")
    gray = resize(np.asarray(Image.open(path).convert("L")), before["resize"]["height"], before["resize"]["width"])
    top, left = before["crop_begin"]["top"], before["crop_begin"]["left"]
    height, width = before["crop"]["height"], before["crop"]["width"]
    return gray[top:top + height, left:left + width]


def batch_of(pixels, preprocessing):
    batch = np.stack(pixels)[:, None]
    if preprocessing["scaling_is_inside_the_model"]:
        return batch
    scaling = preprocessing["scaling"]
    mean, std = (np.array(scaling[k], np.float32).reshape(1, -1, 1, 1) for k in ("mean", "std"))
    return (batch.astype(np.float32) / np.float32(scaling["divide_by"]) - mean) / std


def runner(kind, path):
    if kind == "openvino":
        import openvino
        # Its default computes in bf16 where the processor can.
        model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return lambda batch: model(batch)[0]
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {session.get_inputs()[0].name: batch})[0]


def probabilities(run, pixels, about, at_a_time=16):
    parts = [run(batch_of(pixels[i:i + at_a_time], about["preprocessing"])) for i in range(0, len(pixels), at_a_time)]
    result = np.concatenate(parts).astype(np.float64)
    return 1 / (1 + np.exp(-result)) if about["labels"]["output"]["name"] == "logits" else result


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--runtime", action="append", choices=("onnxruntime", "openvino", "onnx"))
    parser.add_argument("--predicted")
    parser.add_argument("--images", default=".")
    args = parser.parse_args()
    result = {"files": check_sums(args.folder)}
    about = {name: read_json(args.folder, name + ".json") for name in ("preprocessing", "labels", "vectors")}
    findings, before = about["labels"]["findings"], about["preprocessing"]["before_the_model"]
    model = os.path.join(args.folder, "model.onnx")

    vectors = about["vectors"]["vectors"]
    pixels = [np.asarray(Image.open(os.path.join(args.folder, v["input"]))) for v in vectors]
    wanted = [[v["probabilities"][f] for f in findings] for v in vectors]
    resized = [network_pixels(os.path.join(args.folder, v["image"]), before) for v in vectors]
    result["resized_pixels_differ_by"] = max(int(np.abs(a.astype(int) - b).max()) for a, b in zip(pixels, resized))
    sets = {"vectors": (pixels, wanted)}
    if args.predicted:
        rows = [r for r in csv.DictReader(open(args.predicted, newline="")) if not r["error"]]
        sets["predicted"] = ([network_pixels(os.path.join(args.images, r["image"]), before) for r in rows],
                             [[float(r["prob:" + f]) for f in findings] for r in rows])
    worst = 0.0
    for kind in args.runtime or ["onnxruntime"]:
        if kind == "onnx":
            import onnx
            onnx.checker.check_model(onnx.load(model), full_check=True)
            result["onnx"] = "valid"
            continue
        run = runner(kind, model)
        for name, (inputs, outputs) in sets.items():
            difference = float(np.abs(probabilities(run, inputs, about) - np.array(outputs)).max())
            result[f"{kind}_{name}"] = {"images": len(inputs), "worst_difference": difference}
            worst = max(worst, difference)
    print(json.dumps(result))
    sys.exit(0 if worst <= about["vectors"]["tolerance"] and result["resized_pixels_differ_by"] == 0 else 1)


if __name__ == "__main__":
    main()
