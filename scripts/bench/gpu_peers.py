#!/usr/bin/env python3
"""A training step of torchvision's networks in PyTorch: one JSON request a line on stdin, one answer a line on stdout.
request: {"mode": "eager" or "compile", "model", "batch", "size", "steps", "precision": "bf16", "fp16" or "fp32", "device"}
answer: {"images_per_s", "ms_per_step", "peak_bytes", "first_step_s"}, or {"error"}
or: {"mode": "copy", "bytes", "device"}, answered with {"gb_per_s"}, read and written
What its users write: channels-last, autocast (GradScaler in fp16), fused Adam, binary cross-entropy. Images are on the
device and normalized before the first step, and no value is read by the host between two looks at the clock."""
import json
import sys
import time

import torch
import torchvision

FINDINGS, POSITIVES, RATE, WARM_UP = 14, .1, 1e-4, 3


def make_step(request):
    device = request['device']
    torch.manual_seed(1)
    network = getattr(torchvision.models, request['model'])(num_classes=FINDINGS)
    network = network.to(device, memory_format=torch.channels_last).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)
    shape = (request['batch'], 3, request['size'], request['size'])
    images = torch.randn(shape, device=device).to(memory_format=torch.channels_last)
    labels = (torch.rand(request['batch'], FINDINGS, device=device) < POSITIVES).float()
    forward = torch.compile(network) if request['mode'] == 'compile' else network
    type_ = {'bf16': torch.bfloat16, 'fp16': torch.float16, 'fp32': torch.float32}[request['precision']]
    scaler = torch.amp.GradScaler(device, enabled=type_ == torch.float16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, type_, enabled=type_ != torch.float32):
            logits = forward(images)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return step


def seconds_of(action, device):
    """By the GPU's own clock where there is one."""
    if device != 'cuda':
        start = time.perf_counter()
        action()
        return time.perf_counter() - start
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    begin.record()
    action()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def answer(request):
    device, steps = request['device'], request['steps']
    torch._dynamo.reset()
    if device == 'cuda':
        torch.backends.cudnn.benchmark = True
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    step = make_step(request)
    step()
    if device == 'cuda':
        torch.cuda.synchronize()
    first = time.perf_counter() - start
    for _ in range(WARM_UP - 1):
        step()
    if device == 'cuda':
        torch.cuda.synchronize()

    def all_steps():
        for _ in range(steps):
            step()
    seconds = seconds_of(all_steps, device)
    return {'images_per_s': request['batch'] * steps / seconds, 'ms_per_step': 1e3 * seconds / steps,
            'peak_bytes': torch.cuda.max_memory_allocated() if device == 'cuda' else None, 'first_step_s': first}


def copied(request):
    device, rounds = request['device'], 20
    one, other = (torch.zeros(request['bytes'], dtype=torch.uint8, device=device) for _ in range(2))

    def copies():
        for _ in range(rounds):
            other.copy_(one)
    copies()
    return {'gb_per_s': 2e-9 * request['bytes'] * rounds / seconds_of(copies, device)}


def main():
    print(json.dumps({'torch': torch.__version__, 'torchvision': torchvision.__version__}), flush=True)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            found = copied(request) if request['mode'] == 'copy' else answer(request)
        except Exception as error:  # out of memory, or no compiler: the next request may fit
            found = {'error': repr(error)[:300]}
        print(json.dumps(found), flush=True)


if __name__ == '__main__':
    main()
