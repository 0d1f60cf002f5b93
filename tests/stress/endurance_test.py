#!/usr/bin/env python3
"""Trains for many steps and looks whether memory, descriptors or threads of any rank grow.

The network is DenseNet-121 with a frozen backbone at 29 pixels, the least that its pools allow, with one image a rank:
about the fastest step that the program has. Checkpoints, evaluations and comparisons of weights happen all the while.
VmRSS, open descriptors and threads of every rank and of the parent are read from /proc every few seconds. The first
twentieth of the run warms up and is left out; the rest is cut into halves by step.

- memory: the median of the second half may exceed that of the first by --grow-kb at most. Medians, as checkpoints and
  evaluations take memory for a moment.
- descriptors, threads: the least number in the second half may not exceed the least in the first. The least, as a file
  that is being written is open for a moment.

Memory of shorter runs than the 640 steps of a short one holds too few samples of a half. Where --seconds end the run before
its last step, the steps until then count. Exit code 1: something grew, the run ended
by itself with an error, or a half holds fewer than five samples, two checkpoints or two evaluations."""
import json
import math
import os
import pathlib
import re
import signal
import statistics
import sys
import time

import harness

LEAST_SAMPLES = 5  # of a half
LEAST_EVENTS = 2  # checkpoints, and evaluations, of a half
TRAINING_IMAGES = 67  # of the phantom set's 96


def settings(options):
    per_epoch = TRAINING_IMAGES / options.ranks
    every_epochs = max(1, int(options.steps / per_epoch / options.events))
    return ['data.resize=29', 'data.crop=29', 'data.train_crop=center', 'data.rotate_deg=0', 'data.workers=1',
            'data.prefetch=3', 'model.freeze_until=backbone', f'train.batch={options.ranks}',
            f'train.max_steps={options.steps}', 'train.epochs=1000000', 'train.lr=1e-5',
            f'run.log_every={max(1, options.steps // 2000)}',
            f'checkpoint.every_steps={max(1, options.steps // options.events)}', 'eval.splits=[]', 'eval.examples=0',
            f'eval.every_epochs={every_epochs}']


class Tail:
    """The whole lines that a growing file of JSON has got since the last look."""

    def __init__(self, path):
        self.path, self.offset = path, 0

    def lines(self):
        try:
            with open(self.path, 'rb') as file:
                file.seek(self.offset)
                data = file.read()
        except OSError:
            return []
        data = data[:data.rfind(b'\n') + 1]
        self.offset += len(data)
        return [json.loads(line) for line in data.splitlines()]


def look_at(pid):
    """Memory in kB, threads, descriptors; None for a process that has ended."""
    try:
        status = pathlib.Path(f'/proc/{pid}/status').read_text()
        found = [re.search(rf'^{name}:\s+(\d+)', status, re.MULTILINE) for name in ('VmRSS', 'Threads')]
        descriptors = len(os.listdir(f'/proc/{pid}/fd'))
    except OSError:
        return None
    if None in found:  # a zombie
        return None
    return {'rss_kb': int(found[0][1]), 'threads': int(found[1][1]), 'descriptors': descriptors}


class Watch:
    """Samples of all processes of a run, by their names, and the steps at which something happened."""

    def __init__(self, run):
        self.run, self.tail = run, Tail(run.folder / 'metrics.jsonl')
        self.step, self.samples = 0, {}
        self.events = {'checkpoint': [], 'evaluation': []}
        self.processes = {}  # pid by name
        self.first_step_at = None  # step and time of the first line
        self.last_step_at = None
        self.last_checkpoint = None

    def look(self):
        for line in self.tail.lines():
            if line['event'] == 'train':
                self.step = line['step']
                self.last_step_at = (self.step, time.monotonic())
                self.first_step_at = self.first_step_at or self.last_step_at
            elif line['event'] == 'val':
                self.events['evaluation'].append(line['step'])
        try:
            name = os.readlink(self.run.folder / 'checkpoints/last')
        except OSError:
            name = None
        if name != self.last_checkpoint:
            self.last_checkpoint = name
            self.events['checkpoint'].append(self.step)
        if self.step == 0:
            return
        if not self.processes:  # once, as that reads all of /proc; ranks are not started again
            self.processes = {f'rank {process.rank}' if process.kind == 'rank' else process.kind: process.pid
                              for process in self.run.processes() if process.kind in ('rank', 'parent')}
        for name, pid in self.processes.items():
            if sample := look_at(pid):
                self.samples.setdefault(name, []).append((self.step, sample))

    def steps_per_s(self):
        if self.first_step_at in (None, self.last_step_at):
            return 0.0
        (first, began), (last, ended) = self.first_step_at, self.last_step_at
        return (last - first) / (ended - began)


def halves(values, begin, end):
    """Of (step, value): the values of both halves of the steps from begin to end."""
    middle = (begin + end) / 2
    return ([value for step, value in values if begin <= step < middle],
            [value for step, value in values if middle <= step < end])


def compare(samples, begin, end, grow_kb):
    """Figures of one process, and what is wrong with it."""
    first, second = halves(samples, begin, end)
    figures = {'samples': [len(first), len(second)]}
    if min(figures['samples']) < LEAST_SAMPLES:
        return figures, [f'only {min(figures["samples"])} samples of a half']
    problems = []
    rss = [int(statistics.median(sample['rss_kb'] for sample in half)) for half in (first, second)]
    # The medians lie half of the steps apart.
    figures['rss_kb'] = rss
    figures['slope_kb_per_1000_steps'] = round(1000 * (rss[1] - rss[0]) / ((end - begin) / 2), 2)
    if rss[1] - rss[0] > grow_kb:
        problems.append(f'memory grew from {rss[0]} to {rss[1]} kB')
    for what in ('descriptors', 'threads'):
        least = [min(sample[what] for sample in half) for half in (first, second)]
        figures[what] = least
        if least[1] > least[0]:
            problems.append(f'{what} grew from {least[0]} to {least[1]}')
    return figures, problems


def train(options):
    """The run's Watch, and its exit code; None where the time was over."""
    stage = harness.Stage('endurance', settings(options))
    folder = stage.trial_folder(0)
    run = harness.Run(stage, folder / 'run', 'alone' if options.ranks == 1 else 'parent', options.ranks)
    watch = Watch(run)
    told = time.monotonic()
    while run.code() is None and run.age() < options.seconds:
        watch.look()
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f'{run.age():6.0f} s  step {watch.step}, {watch.steps_per_s():.1f} steps/s', flush=True)
        time.sleep(options.every)
    code = run.code()
    if code is None:
        run.end()
    elif code != 0:
        print(harness.read_text(folder / 'log')[-2000:])
    stage.close(keep=code not in (0, None))
    return watch, code


def table(figures):
    lines = ['| process | samples | VmRSS, kB | kB per 1,000 steps | descriptors | threads |',
             '|---|---|---|---|---|---|']
    pair = lambda values: f'{values[0]:,}, {values[1]:,}' if values else '-'
    for name, of in sorted(figures.items()):
        lines.append(f'| {name} | {pair(of["samples"])} | {pair(of.get("rss_kb"))} | '
                     f'{of.get("slope_kb_per_1000_steps", "-")} | {pair(of.get("descriptors"))} | '
                     f'{pair(of.get("threads"))} |')
    return '\n'.join(lines)


def main():
    options = harness.options(__doc__, ranks=2, steps=(640, 200000), events=(32, 400), every=(0.1, 2.0), seconds=(math.inf, 9000.0),
                              grow_kb=4096)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watch, code = train(options)
    begin, end = watch.step // 20, watch.step
    figures, problems = {}, []
    if code not in (0, None):
        problems.append(f'the run ended with {code}')
    for number in range(options.ranks):
        if options.ranks > 1 and f'rank {number}' not in watch.samples:
            problems.append(f'rank {number} was never seen')
    if not watch.samples:
        problems.append('no process of the run was seen')
    for name, samples in watch.samples.items():
        figures[name], wrong = compare(samples, begin, end, options.grow_kb)
        problems += [f'{name}: {text}' for text in wrong]
    for name, steps in watch.events.items():
        counts = [len(half) for half in halves([(step, step) for step in steps], begin, end)]
        figures_of_events = f'{counts[0]} and {counts[1]}'
        if min(counts) < LEAST_EVENTS:
            problems.append(f'only {figures_of_events} of {name} in the halves')
    print(table(figures))
    print(f'{watch.step} steps, {watch.steps_per_s():.1f} steps/s, {len(watch.events["checkpoint"])} checkpoints, '
          f'{len(watch.events["evaluation"])} evaluations')
    for problem in problems:
        print(f'FAILED: {problem}')
    return 1 if problems else 0


sys.exit(main())
