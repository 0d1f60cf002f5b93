#!/usr/bin/env python3
"""Rate of PyTorch's training step on the CPU: torchvision's network in channels-last, fused Adam, images of noise.
usage: step_peers.py MODE MODEL BATCH SIZE THREADS STEPS
MODE: fp32, bf16 (autocast), compile (torch.compile, fp32), or ddp: fp32 on every process that torchrun started, gradients
by gloo, BATCH images on each. Prints one JSON object; first_step_s is from the start of the process to the end of its
first step."""
import json
import os
import resource
import statistics
import sys
import time

import torch
import torchvision


def process_start():
    """In seconds of the clock that CLOCK_BOOTTIME reads."""
    with open('/proc/self/stat') as file:
        ticks = int(file.read().rsplit(')', 1)[1].split()[19])
    return ticks / os.sysconf('SC_CLK_TCK')


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    mode, model = sys.argv[1:3]
    batch, size, threads, steps = map(int, sys.argv[3:])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    network = getattr(torchvision.models, model)(num_classes=14).train().to(memory_format=torch.channels_last)
    parameters = list(network.parameters())
    ranks = 1
    if mode == 'ddp':
        torch.distributed.init_process_group('gloo')
        ranks = torch.distributed.get_world_size()
        network = torch.nn.parallel.DistributedDataParallel(network)
    elif mode == 'compile':
        network = torch.compile(network)
    optimizer = torch.optim.Adam(parameters, 1e-4, fused=True)
    images = torch.rand(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    labels = (torch.rand(batch, 14) < 0.1).float()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cpu', torch.bfloat16, enabled=mode == 'bf16'):
            logits = network(images)
        torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), labels).backward()
        optimizer.step()

    step()
    first = time.clock_gettime(time.CLOCK_BOOTTIME) - process_start()
    step()
    seconds = []
    for _ in range(steps):
        if mode == 'ddp':
            torch.distributed.barrier()
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    if mode != 'ddp' or torch.distributed.get_rank() == 0:
        print(json.dumps({'images_per_s': ranks * batch / statistics.median(seconds), 'first': first,
                          'mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
    if mode == 'ddp':
        torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main()
