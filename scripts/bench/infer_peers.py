#!/usr/bin/env python3
"""Rate of another runtime on an exported network: images of noise in, probabilities out.
usage: infer_peers.py RUNTIME MODEL.onnx BATCH SIZE THREADS PASSES
RUNTIME: onnxruntime, openvino-fp32, openvino-bf16, or torch-fp32 and torch-bf16 (torchvision's DenseNet-121, channels-last,
inference mode; MODEL.onnx is not read). Prints one JSON object."""
import json
import statistics
import sys
import time

import numpy as np

WARM_UP = 3


def onnxruntime(path, threads, _):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    return lambda images: session.run(None, {'image': images})


def openvino(path, threads, precision):
    import openvino as ov
    hint = {'fp32': 'f32', 'bf16': 'bf16'}[precision]
    model = ov.Core().compile_model(path, 'CPU', {
        'INFERENCE_PRECISION_HINT': hint, 'INFERENCE_NUM_THREADS': threads, 'PERFORMANCE_HINT': 'LATENCY'})
    request = model.create_infer_request()
    return lambda images: request.infer({'image': images})


def torch(_, threads, precision):
    import torch as pt
    import torchvision
    pt.set_num_threads(threads)
    network = torchvision.models.densenet121(num_classes=14).eval().to(memory_format=pt.channels_last)

    def run(images):
        gray = pt.from_numpy(images).float().div(255).expand(-1, 3, -1, -1).contiguous(memory_format=pt.channels_last)
        with pt.inference_mode(), pt.autocast('cpu', pt.bfloat16, enabled=precision == 'bf16'):
            return network(gray).sigmoid()
    return run


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    runtime, path = sys.argv[1:3]
    batch, size, threads, passes = map(int, sys.argv[3:])
    name, _, precision = runtime.partition('-')
    run = {'onnxruntime': onnxruntime, 'openvino': openvino, 'torch': torch}[name](path, threads, precision)
    images = np.random.default_rng(1).integers(0, 256, (batch, 1, size, size), dtype=np.uint8)
    seconds = []
    for i in range(-WARM_UP, passes):
        start = time.perf_counter()
        run(images)
        if i >= 0:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({'runtime': runtime, 'images_per_s': batch / statistics.median(seconds)}))


if __name__ == '__main__':
    main()
