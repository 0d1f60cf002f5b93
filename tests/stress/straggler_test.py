#!/usr/bin/env python3
"""A rank slowed 1.5 times is named within 50 steps with its rank; undisturbed ranks raise no alarm in 5,000 steps.

Wants a quiet machine: what else runs on its cores is, rightly, a straggler."""
import signal
import sys
import time

import harness


def start(stage, number, steps):
    return harness.Run(stage, stage.trial_folder(number) / 'run', 'parent', 2, settings=[f'train.max_steps={steps}'])


def last_step(run):
    return max((line['step'] for line in harness.metrics(run.folder) if line['event'] == 'train'), default=0)


def alarms(run):
    return [line for line in harness.metrics(run.folder) if line['event'] == 'straggler']


def slow(run, rank):
    """Until its end the rank runs two thirds of the time, in slices much shorter than a step."""
    (victim,) = [process.pid for process in run.processes() if process.rank == rank]
    while run.code() is None:
        time.sleep(0.008)
        harness.send(victim, signal.SIGSTOP)
        time.sleep(0.004)
        harness.send(victim, signal.SIGCONT)


def slowed(stage, rank, steps):
    """Whether the first alarm named the rank in time."""
    run = start(stage, 1 + rank, steps)
    if not run.wait_until(lambda: last_step(run) >= 100, 600):
        return False
    at = last_step(run)
    slow(run, rank)
    seen = [(line['step'], line['rank'], round(line['ratio'], 2), line['cause']) for line in alarms(run)]
    print(f'rank {rank} slowed at {at}: {seen}', flush=True)
    return bool(seen) and seen[0][1] == rank and seen[0][0] - at <= 50


def main():
    harness.skip_unless_long()
    options = harness.options(__doc__, undisturbed_steps=5000, slowed_steps=400)
    stage = harness.Stage('straggler', ['eval.splits=[]', 'eval.every_epochs=0', 'train.epochs=100000',
                                        'checkpoint.every_steps=0'])
    even = start(stage, 0, options.undisturbed_steps)
    code, seen = even.wait(3600), alarms(even)
    print(f'undisturbed: exit {code}, step {last_step(even)}, alarms: {seen}', flush=True)
    good = code == 0 and not seen
    for rank in (0, 1):
        good = slowed(stage, rank, options.slowed_steps) and good
    if not good:
        print(f'FAILED: kept: {stage.folder}')
    stage.close(keep=not good)
    return 0 if good else 1


sys.exit(main())
