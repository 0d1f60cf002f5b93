#!/usr/bin/env python3
"""Which runs end with the same weights, bit for bit? Trains the same small config (phantom images, DenseNet-121 at 32 px)
on all combinations of instruction sets, ranks, threads, containers, and undisturbed or killed and resumed, and prints one
table.

  --instructions default, avx2, avx512 (default: the last two, as far as this processor has them): what it may use, as
                 ATEN_CPU_CAPABILITY says it to LibTorch and to our engine; all: whatever there is
  --containers   of folder, tar, tfrecord, pack, s3 (a server on this machine, which checks signatures)
  --set          over the config, for every run: train.engine=direct
  --seconds      begin no run after this time: cells of the table stay empty

Equal letters are equal weights, running statistics and optimizer state. A lower-case letter is a run that was killed
(SIGKILL of a rank) and resumed. Exit code 1: a resumed run, or one from another container, on other threads or with
other instructions (but default), ended otherwise; or, where there is AVX-512, fp64 on it did not end as on AVX2."""
import dataclasses
import hashlib
import itertools
import math
import os
import pathlib
import signal
import string
import subprocess
import sys
import tarfile
import time

import harness

KILLED_AFTER = 5  # steps; checkpoints are at 3, 6, …
SERVER_ENVIRONMENT = {'AWS_ACCESS_KEY_ID': 'AKTEST', 'AWS_SECRET_ACCESS_KEY': 'secret/with+signs'}


def processors_sets():
    flags = pathlib.Path('/proc/cpuinfo').read_text().split()
    return [name for name, flag in (('avx2', 'avx2'), ('avx512', 'avx512vl')) if flag in flags]


def digest(run):
    """Of the tensors alone: what else a file says names the time and the place."""
    total = hashlib.sha256()
    for name in ('model', 'optimizer'):
        total.update(harness.safetensors(run / f'checkpoints/last/{name}.safetensors')[1])
    return total.hexdigest()


class Containers:
    """The images of the stage in each form: what data.images is then."""

    def __init__(self, stage):
        self.stage, self.server = stage, None
        self.images = stage.folder / 'set/images'

    def packed(self, name, *more):
        out = self.stage.folder / name
        command = [self.stage.program, 'pack', self.stage.config, '--out', out, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return out

    def make(self, kind):
        return getattr(self, kind)()

    def folder(self):
        return self.images

    def tar(self):
        out = self.stage.folder / 'images.tar'
        with tarfile.open(out, 'w') as archive:
            archive.add(self.images, 'images')
        return out

    def tfrecord(self):
        return self.packed('records', '--format', 'tfrecord', '--per-shard', '20')

    def pack(self):
        return self.packed('images.pack')

    def s3(self):
        buckets = self.stage.folder / 'buckets'
        (buckets / 'xrays').mkdir(parents=True)
        (buckets / 'xrays/images').symlink_to(self.images)
        port = self.stage.folder / 'port'
        self.server = subprocess.Popen([sys.executable, harness.ROOT / 'tests/support/s3_server.py', buckets, '--port-file', port,
                                        '--faults', '0', '--log', self.stage.folder / 's3.log'])
        while not port.exists():
            time.sleep(0.05)
        os.environ.update(SERVER_ENVIRONMENT, AWS_ENDPOINT_URL=f'http://127.0.0.1:{port.read_text().strip()}')
        return 's3://xrays/images'

    def close(self):
        if self.server:
            self.server.terminate()


@dataclasses.dataclass(frozen=True)
class Case:
    instructions: str
    ranks: int
    threads: int
    container: str
    resumed: bool

    def text(self):
        state = 'killed and resumed' if self.resumed else 'undisturbed'
        return f'{self.instructions}, {self.ranks} ranks, {self.threads} threads, {self.container}, {state}'


def train(stage, name, place, case):
    """The digest of its end."""
    folder = stage.trial_folder(name)
    settings = [f'data.images=["{place}"]', f'launch.threads={case.threads}']
    os.environ.pop('ATEN_CPU_CAPABILITY', None)
    if case.instructions != 'all':
        os.environ['ATEN_CPU_CAPABILITY'] = case.instructions
    how = 'alone' if case.ranks == 1 else 'parent'
    run = harness.Run(stage, folder / 'run', how, case.ranks, settings=settings)
    if case.resumed:
        run.wait_until(lambda: run.last_step() >= KILLED_AFTER, 600)
        victims = [p for p in run.processes() if p.kind == 'rank' or case.ranks == 1]
        if not victims or not harness.send(victims[-1].pid, signal.SIGKILL):
            sys.exit(f'error: no process to kill; see {folder}/log')
        run.wait(120)
        run = harness.Run(stage, folder / 'run', how, case.ranks, resume=True, settings=settings)
    code = run.wait(900)
    if code != 0:
        sys.exit(f'error: the run ended with {code}; its output is {folder}/log')
    if case.resumed and (wrong := run.went_on()):
        sys.exit(f'error: a resume that is none: {wrong}; see {folder}/log')
    found = digest(run.folder)
    harness.shutil.rmtree(folder)
    return found


def letters_of(table):
    """A letter for each digest, in the order of the table."""
    letters = {}
    for found in table.values():
        if found not in letters:
            letters[found] = string.ascii_uppercase[len(letters)]
    return letters


def show(table, containers):
    letters = letters_of(table)
    print('| instructions | ranks | threads | ' + ' | '.join(containers) + ' |')
    print('|---' * (3 + len(containers)) + '|')
    for row in dict.fromkeys((case.instructions, case.ranks, case.threads) for case in table):
        cells = []
        for container in containers:
            whole, resumed = (letters.get(table.get(Case(*row, container, again)), '') for again in (False, True))
            cells.append(f'{whole} {resumed.lower()}'.strip())
        print('| ' + ' | '.join(map(str, row)) + ' | ' + ' | '.join(cells) + ' |')


def kind(case):
    """Cases of one kind must end alike. Without fused multiply-adds (default) a product is rounded by itself."""
    return case.instructions if case.instructions == 'default' else '', case.ranks


def differing(table):
    """Cases whose end is not that of the first one of their kind."""
    first = {}
    for case, found in table.items():
        first.setdefault(kind(case), found)
    return [case for case, found in table.items() if found != first[kind(case)]]


def cases_of(options):
    """All of one container, then all of the next: where time runs out, each row has the same columns."""
    lists = (options.containers, options.instructions, options.ranks, options.threads, (False, True))
    return [Case(instructions, ranks, threads, container, resumed)
            for container, instructions, ranks, threads, resumed in itertools.product(*lists)]


def fill(table, cases, stage, options):
    began = time.monotonic()
    containers = Containers(stage)
    places = {}
    try:
        for case in cases:
            if time.monotonic() - began > options.seconds:
                return
            if case.container not in places:
                places[case.container] = containers.make(case.container)
            table[case] = train(stage, len(table) + 1, places[case.container], case)
            print(f'{len(table)} of {len(cases)} runs, {time.monotonic() - began:.0f} s', file=sys.stderr, flush=True)
    finally:
        containers.close()


def end_of(stage, name, instructions, settings):
    os.environ['ATEN_CPU_CAPABILITY'] = instructions
    run = harness.Run(stage, stage.trial_folder(name) / 'run', 'alone', 1, settings=settings)
    return run.wait(600), run


def try_instructions(stage):
    """What is wrong with fp64 on AVX2 and on AVX-512, and with instructions that no processor has."""
    code, run = end_of(stage, 9000, 'avx1024', [])
    if code != 2 or "no instruction set 'avx1024' on this processor" not in harness.read_text(run.folder.parent / 'log'):
        yield f'avx1024: exit {code}'
    if processors_sets() == ['avx2', 'avx512']:
        # 42 entries of the loss: LibTorch computes those that are left after whole vectors by other functions.
        settings = ['train.precision=fp64', 'train.batch=3', 'train.max_steps=6', 'data.resize=72', 'data.crop=64']
        ends = [end_of(stage, 9001 + number, name, settings) for number, name in enumerate(processors_sets())]
        if any(code != 0 for code, _ in ends) or len({digest(run.folder) for _, run in ends}) != 1:
            yield 'fp64 on AVX2 and on AVX-512: other weights'


def main():
    options = harness.options(__doc__, instructions=processors_sets() or ['all'], ranks=([2], [1, 2, 4]), threads=([1], [1, 3]),
                              containers=(['pack'], ['folder', 'tar', 'tfrecord', 'pack', 's3']), set=[''], seconds=math.inf)
    cases = cases_of(options)
    settings = ['eval.splits=[]', 'eval.every_epochs=0', 'train.max_steps=8', *filter(None, options.set)]
    stage = harness.Stage('determinism', settings)
    table = {}
    fill(table, cases, stage, options)
    show(table, options.containers)
    print(f'{len(table)} of {len(cases)} runs')
    bad = [f'{case.text()}: other weights than the first run on as many ranks' for case in differing(table)]
    bad += try_instructions(stage)
    for text in bad:
        print(f'FAILED: {text}')
    stage.close(keep=bool(bad))
    return 1 if bad else 0


sys.exit(main())
