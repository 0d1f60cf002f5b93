#!/usr/bin/env python3
"""Changes one bit in the memory of one rank of a training, and looks who notices.

A trial is a small training (phantom images, DenseNet-121 at 32 px, a frozen backbone) that the program starts on its
ranks. At a random step a random bit of a random rank's frozen weights is flipped through /proc/PID/mem: nobody writes
there, so it stays until it is found. The program must name the rank within train.verify_every steps and go back to its
last checkpoint by itself, up to six times a trial, and end with the weights and optimizer of an undisturbed run, byte
for byte, and with its losses and scores. In every third trial the first flip is rank 0's, inside the writing of a
checkpoint. With two ranks it names both. --ranks 3,4: the trials on three, then on four. Needs the right to write in processes
of one's own (ptrace). Exit code 1: a flip was missed, or a run was lost."""
import math
import os
import pathlib
import re
import signal
import socket
import sys

import harness

VERIFY_EVERY = 5  # steps
STEPS = 40
LAST_FLIP = STEPS - VERIFY_EVERY  # step
MOST_FLIPS = 6  # of a trial
CHECKPOINT_EVERY = 10  # steps
SETTINGS = ['train.batch={batch}', 'model.freeze_until=backbone', f'train.verify_every={VERIFY_EVERY}', f'train.max_steps={STEPS}',
            f'checkpoint.every_steps={CHECKPOINT_EVERY}', f'launch.restarts={MOST_FLIPS}', 'eval.splits=[]', 'eval.every_epochs=0']
PIECE = 512  # bytes of a weight that are looked for


def frozen_weights(model):
    """The bytes of all 1x1 convolutions of a model file, which lie in memory as they lie in the file."""
    tensors, data = harness.safetensors(model)
    found = []
    for tensor in tensors.values():
        shape = tensor['shape']
        begin, end = tensor['data_offsets']
        if len(shape) == 4 and shape[2:] == [1, 1] and end - begin >= PIECE:
            found.append(data[begin:end])
    return found


def writable_ranges(pid):
    for line in pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines():
        match = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw', line)
        if match and '/dev/' not in line:
            yield int(match[1], 16), int(match[2], 16)


def flip_in_memory(pid, weight, at, bit):
    """Flips a bit of byte `at` in each copy of the weight; how many there were."""
    copies = 0
    start = min(at, len(weight) - PIECE)
    piece = weight[start:start + PIECE]
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
        for low, high in writable_ranges(pid):
            try:
                memory.seek(low)
                data = memory.read(high - low)
            except OSError:
                continue
            place = data.find(piece)
            while place >= 0:
                memory.seek(low + place + at - start)
                memory.write(bytes([weight[at] ^ 1 << bit]))
                copies += 1
                place = data.find(piece, place + 1)
    return copies


def findings(text):
    """Of each time the program said that weights differ: the step; who differs from others, or in a checkpoint from itself."""
    found = re.findall(r'after step (\d+) (?:the ranks hold different weights: (.*?)(?: differs? from all|, and which)'
                       r'|the weights of (.*?) changed while the checkpoint was written)', text)
    return [(int(step), compared, in_checkpoint) for step, compared, in_checkpoint in found]


class Failed(Exception):
    pass


def flip(run, ranks, rng, weights, after, in_checkpoint):
    """One flip after step `after`: the step that the run had reached when it was found, and after how many."""
    rank, weight = rng.randrange(ranks), rng.choice(weights)
    at, bit = rng.randrange(len(weight)), rng.randrange(8)
    step = rng.randint(after + 1, min(LAST_FLIP, after + 2 * CHECKPOINT_EVERY))
    moment = lambda: run.last_step() >= step
    if in_checkpoint:
        rank, moment = 0, lambda: run.last_step() + CHECKPOINT_EVERY >= step and run.has_partial_checkpoint()
    name = f'(step {step}, rank {rank}, bit {bit} of byte {at})'
    if not run.wait_until(moment, 600):
        raise Failed(f'the run ended before its flip {name}')
    found_so_far = lambda: findings(harness.read_text(run.folder.parent / 'log'))
    before = len(found_so_far())
    pid = next(process.pid for process in run.processes() if process.kind == 'rank' and process.rank == rank)
    os.kill(pid, signal.SIGSTOP)
    copies = flip_in_memory(pid, weight, at, bit)
    flipped_at = run.last_step()
    os.kill(pid, signal.SIGCONT)
    if copies == 0:
        raise Failed(f'the weights were not found in the memory of the rank {name}')
    run.wait_until(lambda: len(found_so_far()) > before, 600)
    said = found_so_far()[before:]
    if not said:
        raise Failed(f'MISSED: no rank was named {name}')
    found_at, compared, alone = said[0]
    wanted = [rank] if ranks > 2 or alone else [0, 1]  # of two that differ nobody knows which
    if (compared or alone) != ', '.join(f'rank {number} on {socket.gethostname()}' for number in wanted):
        raise Failed(f'named was "{compared or alone}" {name}')
    if found_at - flipped_at > VERIFY_EVERY:
        raise Failed(f'found after {found_at - flipped_at} steps {name}')
    return max(found_at, flipped_at), max(0, found_at - flipped_at)


def trial(stage, ranks, number, tally, weights):
    rng = tally.dice(number)
    folder = stage.trial_folder(number)
    run = harness.Run(stage, folder / 'run', 'parent', ranks)
    problem, step = '', 0
    try:
        for _ in range(rng.randint(1, MOST_FLIPS)):
            if step >= LAST_FLIP:
                break
            tally.counts['flips'] += 1
            # Steps after the one where the last flip was found are of a start without flips.
            step, late = flip(run, ranks, rng, weights, step, in_checkpoint=number % 3 == 0 and step == 0)
            tally.counts['found'] += 1
            tally.values['steps until found'].append(late)
    except Failed as failed:
        problem = str(failed)
    code = run.wait(tally.options.within)
    tally.counts['trials'] += 1
    if not problem and code != 0:
        problem = f'LOST: the run ended with {code}'
    problem = problem or stage.whole(ranks).difference(run.folder)
    if problem:
        tally.problem(number, problem, folder)
    else:
        harness.shutil.rmtree(folder)


def trials(options, ranks):
    stage = harness.Stage('bit-flips', [setting.format(batch=4 * ranks) for setting in SETTINGS])
    tally = harness.Tally(options, 'bit_flips')
    for name in ('trials', 'flips', 'found'):
        tally.counts[name] += 0
    weights = frozen_weights(stage.whole(ranks).folder / 'checkpoints/last/model.safetensors')
    for number in tally.numbers():
        trial(stage, ranks, number, tally, weights)
        tally.progress()
    steps = sorted(tally.values['steps until found'])
    code = tally.finish({'ranks': ranks, 'steps_until_found': {'median': steps[len(steps) // 2], 'most': steps[-1]} if steps else None})
    stage.close(keep=code != 0)
    return code


def main():
    options = harness.trial_options(__doc__, trials=(1, 40), seconds=math.inf, ranks=([3, 2], [3, 4]), within=300.0, seed=(3, 1))
    return max([trials(options, ranks) for ranks in options.ranks])


sys.exit(main())
