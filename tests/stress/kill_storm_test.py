#!/usr/bin/env python3
"""Kills training runs with SIGKILL at random moments, resumes them, and compares their ends with an undisturbed run's.

A trial is a small training (phantom images, DenseNet-121 at 32 px, checkpoints, evaluations) that is started by mpirun
or by the program itself. A rank, mpirun or the parent gets SIGKILL: at a moment drawn from what is left of the run, or
while a checkpoint is being written. Within --within seconds (2 on an idle machine) no process, no shared memory and no temporary file of the run
may be left. Then `--resume auto` goes on, up to its next kill: there are one to eight, and what is started last goes on
to the end, from the newest checkpoint. Weights and optimizer must equal those of the undisturbed run byte for byte, and
so must the losses and scores in metrics.jsonl. A trial that fails is named with its number and keeps its folder:
`--only` repeats it. What mpirun leaves in TMPDIR when it is killed before it has started the program is not counted:
there is nobody yet to remove it. Exit code 1: a run was lost, something was left behind, or nothing was killed."""
import math
import signal
import sys
import time

import harness

LATEST = 1.05  # of the run's length
MOST_KILLS = 8  # of a trial: the start and the comparison of the last run are paid once for all of them
AT_A_CHECKPOINT = 0.4  # share of the kills
GONE = 'seconds until all were gone, kill of '
WRITING_S = 0.15  # a checkpoint of the small network takes about so long


def length_left(run, whole):
    """Seconds from a start to its end: the start, and the steps after the newest checkpoint."""
    left = 1 - harness.newest_checkpoint(run.folder) / whole.steps
    return whole.start_s + left * (whole.length_s - whole.start_s)


def await_moment(run, length_s, rng):
    """Where the kill comes: the class of its moment, or nothing when the run ended first."""
    at_s = rng.uniform(0, LATEST) * length_s
    if rng.random() >= AT_A_CHECKPOINT:
        return 'any moment' if run.wait_for_age(at_s) else None
    delay_s = rng.choice([0, rng.uniform(0, WRITING_S)])
    if not run.wait_for_age(at_s * 0.9) or not run.wait_until(run.has_partial_checkpoint, 60):
        return None
    time.sleep(delay_s)
    return 'checkpoint'


def kill_once(run, whole, rng, tally):
    """Whether somebody was killed; what was left goes into the tally."""
    wanted = rng.choice(['rank', 'rank', 'mpirun', 'parent'] if run.how == 'parent' else ['rank', 'mpirun'])
    left_overs = harness.LeftOvers(run, tally.options.within)
    length_s = length_left(run, whole)
    moment = await_moment(run, length_s, rng)
    victim = run.victim(wanted, rng) if moment else None
    partial = run.has_partial_checkpoint()
    tidied = run.is_tidied()
    if victim is None or not harness.send(victim.pid, signal.SIGKILL):
        tally.counts['ended first'] += 1
        whole.ended_after(run.age(), length_s)
        run.wait(60)
        return None
    killed = time.monotonic()
    tally.counts['kills'] += 1
    tally.counts[f'of {victim.kind}'] += 1
    tally.counts['while a checkpoint was written'] += partial
    tally.counts['of mpirun before the program ran'] += victim.kind == 'mpirun' and not tidied
    found, examples, last_s = left_overs.find(killed, tidied)
    tally.left.update(found)
    tally.values[GONE + victim.kind].append(round(last_s, 3))
    if not found:
        return ''
    return f'kill of {victim.kind} at {killed - run.began:.2f} s ({moment}) left {dict(found)} {examples[:3]}'


def trial(stage, number, tally):
    rng = tally.dice(number)
    ranks = tally.options.ranks
    folder = stage.trial_folder(number)
    how = rng.choice(['parent', 'parent', 'mpirun'])
    problems = []
    for kill in range(rng.randint(1, MOST_KILLS)):
        run = harness.Run(stage, folder / 'run', how, ranks, resume=kill > 0)
        problem = kill_once(run, stage.whole(ranks), rng, tally)
        if problem is None:
            break
        if problem:
            problems.append(problem)
    lost = stage.resume_to_end(folder / 'run', how, ranks)
    tally.counts['trials'] += 1
    tally.counts['lost'] += bool(lost)
    if lost:
        problems.append('LOST: ' + lost)
    for problem in problems:
        tally.problem(number, f'{problem} ({how})', folder)
    if not problems:
        harness.shutil.rmtree(folder)


def main():
    options = harness.trial_options(__doc__, trials=(3, 200), seconds=(6.0, math.inf), ranks=(2, 4), within=60.0, seed=(5, 1))
    harness.take_own_shared_memory()
    stage = harness.Stage('kill-storm')
    tally = harness.Tally(options, 'kill_storm', needed='kills')
    for name in ('trials', 'lost', 'kills'):
        tally.counts[name] += 0
    length_s = stage.whole(options.ranks).length_s
    for number in tally.numbers():
        trial(stage, number, tally)
        tally.progress()
    gone = {what.removeprefix(GONE): harness.middle_and_most(seconds) for what, seconds in tally.values.items()}
    code = tally.finish({'all_gone': gone, 'undisturbed_s': round(length_s, 1)})
    stage.close(keep=code != 0)
    return code


sys.exit(main())
