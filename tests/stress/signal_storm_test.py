#!/usr/bin/env python3
"""Asks training runs to stop by USR1, TERM, INT or HUP at random moments: a checkpoint, and a resume to the same end.

A trial is a small training (phantom images, DenseNet-121 at 32 px) of one process, or of two ranks (--ranks 1: of one
process alone) that the program or mpirun starts. The signal goes to the process that a batch system knows: the program,
its parent, or mpirun (which passes on USR1; TERM and INT end its ranks, so these must only lose nothing). The moment is
drawn from the whole run, from its start, from the writing of a checkpoint, or from an evaluation. The run must end
within --within seconds (10 on an idle machine), with exit code 75 and a whole checkpoint of its last step. A quarter of the trials send the
signal twice. A run that ends with 0 had logged its last step before the signal, or the one before it. Nothing may be
left behind, and `--resume auto` must go on from the newest checkpoint to the weights and optimizer of an undisturbed
run, byte for byte, and to the losses and scores in its metrics.jsonl. A trial that fails is named with its number and
keeps its folder: `--only` repeats it. Exit code 1: something was wrong, or no signal was sent."""
import math
import signal
import sys
import time

import harness

SIGNALS = {'USR1': signal.SIGUSR1, 'TERM': signal.SIGTERM, 'INT': signal.SIGINT, 'HUP': signal.SIGHUP}
LONGEST_PAUSE_S = 0.4  # between two signals
LATEST = 1.02  # of the undisturbed run's length
ENDED = 'end after a signal, '  # what times are of
EARLY = 'signal before it listened, s after the start'
ANOTHER_STEP = 'exit 75 with a checkpoint of step'
BY_SIGNAL = {name: 128 + number for name, number in SIGNALS.items()}


def await_moment(run, whole, rng):
    """The class of the moment, or nothing when the run ended first."""
    moment = rng.choices(['any moment', 'start', 'checkpoint', 'evaluation'], [45, 15, 20, 20])[0]
    if moment in ('any moment', 'start'):
        length_s = LATEST * whole.length_s if moment == 'any moment' else whole.start_s
        return moment if run.wait_for_age(rng.uniform(0, length_s)) else None
    if moment == 'checkpoint':
        reached = run.wait_for_age(rng.uniform(0, whole.length_s)) and run.wait_until(run.has_partial_checkpoint, 60)
        return moment if reached else None
    step = run.folder / 'checkpoints' / f'step-{rng.choice(whole.evaluated):08d}'
    if not run.wait_until(step.exists, 60):
        return None
    time.sleep(rng.uniform(0, 0.2))
    return moment


def stopped_well(run):
    """An empty text when the run of exit code 75 has a whole checkpoint of its last step, or had not made any."""
    lines = harness.metrics(run.folder)
    steps = [line['step'] for line in lines if line['event'] == 'train']
    last = run.folder / 'checkpoints' / 'last'
    if not steps and not last.exists():
        return ''
    if not (last / 'state.json').exists():
        return 'exit 75 without a checkpoint'
    step = int(last.resolve().name.split('-')[1])
    if steps and step != max(steps):
        return f'{ANOTHER_STEP} {step} after step {max(steps)}'
    # Of a run that was at its end the parent alone was stopped.
    if not any(line['event'] in ('stop', 'end') and line['step'] == step for line in lines):
        return 'exit 75 without a line of metrics.jsonl that says so'
    return ''


def outcome(run, code, name, twice, logged, steps):
    """How it ended, and what is wrong with that. `logged`: of all `steps`, when the signal was sent."""
    if code is None:
        return 'did not end', f'still there long after {name}'
    if code == 0:
        if logged >= steps - 1:
            return 'was at its end', ''
        # mpirun has nobody to pass it on to while it starts the ranks.
        if run.how == 'mpirun' and name == 'USR1' and logged == 0:
            return 'before its ranks', ''
        return 'went on', f'{name} was ignored, {steps - logged} steps before the end'
    if code == 75:
        problem = stopped_well(run)
        # The second signal ends the ranks wherever they are.
        return 'exit 75', '' if twice and problem.startswith(ANOTHER_STEP) else problem
    if run.how == 'mpirun' and name != 'USR1':
        return 'ended by mpirun', ''
    if twice and name == 'INT' and code == BY_SIGNAL['INT']:
        return 'ended at once', ''
    if not run.folder.exists() and code == BY_SIGNAL[name]:  # made right after the program began to listen
        return 'before it listened', ''
    if code == BY_SIGNAL[name] and any(line['event'] == 'end' for line in harness.metrics(run.folder)):
        return 'behind its end', ''
    return f'exit {code}', f'exit {code} after {name}'


def trial(stage, number, tally):
    rng = tally.dice(number)
    alone = tally.options.ranks == 1 or rng.random() < 0.5
    how = rng.choice(['alone', 'alone', 'alone, restarts'] if alone else ['parent', 'parent', 'mpirun'])
    ranks = 1 if alone else tally.options.ranks
    whole = stage.whole(ranks)
    name = rng.choice(['USR1', 'USR1', 'TERM', 'INT'] if how == 'mpirun' else list(SIGNALS))
    twice = rng.random() < 0.25
    settings = ['launch.restarts=2'] if 'restarts' in how else []
    folder = stage.trial_folder(number)
    run = harness.Run(stage, folder / 'run', how.split(',')[0], ranks, settings=settings)
    left_overs = harness.LeftOvers(run, 2 * tally.options.within)
    moment = await_moment(run, whole, rng)
    tally.counts['trials'] += 1
    problems = []
    tidied = run.is_tidied()
    logged = run.last_step()
    if moment and harness.send(run.process.pid, SIGNALS[name]):
        sent, age_s = time.monotonic(), run.age()
        if twice:
            time.sleep(rng.uniform(0, LONGEST_PAUSE_S))
            harness.send(run.process.pid, SIGNALS[name])
        code = run.wait(tally.options.within)
        ended_s = time.monotonic() - sent
        kind, problem = outcome(run, code, name, twice, logged, whole.steps)
        tally.counts[kind] += 1
        tally.counts['signals'] += 1 + twice
        tally.values[ENDED + kind].append(round(ended_s, 3))
        found, examples, _ = left_overs.find(time.monotonic(), tidied)
        tally.left.update(found)
        where = f'{"two" if twice else "one"} {name} to {how} at {age_s:.2f} s ({moment})'
        if problem:
            problems.append(f'{problem}: {where}')
        if found:
            problems.append(f'left {dict(found)} {examples[:3]}: {where}')
        if kind == 'before it listened':
            tally.values[EARLY].append(round(age_s, 3))
    else:
        tally.counts['ended first'] += 1
        whole.ended_after(run.age(), whole.length_s)
        run.wait(60)
    lost = stage.resume_to_end(folder / 'run', run.how, ranks)
    tally.counts['lost'] += bool(lost)
    if lost:
        problems.append('LOST: ' + lost)
    for problem in problems:
        tally.problem(number, problem, folder)
    if not problems:
        harness.shutil.rmtree(folder)


def main():
    options = harness.trial_options(__doc__, trials=(3, 200), seconds=(6.0, math.inf), ranks=2, within=60.0, seed=(5, 1))
    harness.take_own_shared_memory()
    stage = harness.Stage('signal-storm')
    tally = harness.Tally(options, 'signal_storm', needed='signals')
    for name in ('trials', 'signals', 'lost'):
        tally.counts[name] += 0
    for number in tally.numbers():
        trial(stage, number, tally)
        tally.progress()
    more = {kind: harness.middle_and_most(times) for kind, times in sorted(tally.values.items()) if kind != EARLY}
    more['latest ' + EARLY] = max(tally.values[EARLY], default=0)
    code = tally.finish(more)
    stage.close(keep=code != 0)
    return code


sys.exit(main())
