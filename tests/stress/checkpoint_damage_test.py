#!/usr/bin/env python3
"""Damages what a run reads, bit by bit, and says what was noticed.

  bits    the test cases [damage] of test_base (tests/data/bit_damage_test.cpp): each bit of a small checkpoint, pack,
          archive, TFRecord shard, index and staged copy is flipped, each file is cut to each length, and random bits
          of files of real sizes are flipped. A damage is noticed (an error before the bytes are used, or the file is
          made anew), noticed by the picture's own checksums, without effect (nothing that is read: all images and the
          index are as before), or missed.
  cases   the newest checkpoint of a run is damaged in one file (a bit, cut off, empty, a folder in its place, absent),
          and --resume auto goes on from the one before, says so, and ends in the weights of a run without damage

A short run tries two cases, and leaves the bits to test_base. --cases N: N of them. --seconds S: for the bits. Ends with 1 where a damage was missed, or a resume went wrong."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import crash_jobs
import harness

COLUMNS = ('what', 'how', 'bytes', 'tried', 'noticed', 'by_the_picture', 'no_effect', 'missed', 'names_file',
           'names_offset')


class DamagedRun(crash_jobs.Train):
    """A run with two checkpoints, that goes on to a third step."""
    keep = 2

    def prepare(self):
        config = self.config('train', steps=2)
        self.call('train', config, '--out', self.folder / 'run')
        self.config('train', steps=3)

    def compare(self, clean):
        """Weights and lines of training: step 2 was evaluated only because the first run ended there."""
        return self.weights(clean) + self.lines(self.folder / 'run', clean / 'run', ('train',))


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 16
    path.write_bytes(data)


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[:len(data) * 2 // 3])


def make_empty(path):
    path.write_bytes(b'')


def make_folder(path):
    path.unlink()
    path.mkdir()


HOW = {'a bit': flip, 'cut off': cut, 'empty': make_empty, 'a folder': make_folder, 'absent': pathlib.Path.unlink}
CASES = [(name, how) for how in HOW for name in ('model.safetensors', 'optimizer.safetensors', 'state.json')]


def copy_linked(source, to):
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(source, to, symlinks=True,
                    copy_function=lambda a, b: os.link(a, b) if a.endswith('.safetensors') else shutil.copy2(a, b))


def damaged_resume(job, originals, clean, name, how):
    """Problems of one case."""
    copy_linked(originals, job.folder)
    newest = job.folder / 'run/checkpoints/step-00000002'
    if name.endswith('.safetensors'):  # a regular file, as the others are links
        shutil.copy2(newest / name, job.base / 'own')
        os.replace(job.base / 'own', newest / name)
    HOW[how](newest / name)
    done = job.start()
    if done.returncode != 0:
        return [f'ended with {done.returncode}: {done.stderr[-500:]}']
    problems = job.compare(clean)
    if f'{newest}: {name}' not in done.stderr or f'{newest} is broken and was moved to' not in done.stderr:
        problems.append(f'does not say what is broken: {done.stderr[:500]}')
    if not newest.with_name('step-00000002.broken-1').exists():
        problems.append('the broken checkpoint is gone')
    return problems


def try_cases(count):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix='chexnet-damage-'))
    wrong, done = [], 0
    try:
        job = DamagedRun(scratch / 'job', 40)
        originals, clean = job.base / 'originals', job.base / 'clean'
        copy_linked(job.folder, originals)
        first = job.start()
        if first.returncode != 0:
            sys.exit(f'the run without damage ended with {first.returncode}\n{first.stderr[-1000:]}')
        copy_linked(job.folder, clean)
        step = max(1, len(CASES) // count)
        for name, how in CASES[::step][:count]:
            problems = damaged_resume(job, originals, clean, name, how)
            done += 1
            wrong += [f'{name}, {how}: {problem}' for problem in problems]
            print(f'{name}, {how}: {"; ".join(problems) or "went on from the one before, weights equal"}', flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return done, wrong


def try_bits(seconds):
    figures = tempfile.NamedTemporaryFile(suffix='.json')
    environment = {**os.environ, 'CHEXNET_FIGURES': figures.name}
    begin, said, told = time.monotonic(), 0, []

    def tell_new():
        for line in pathlib.Path(figures.name).read_text().splitlines()[len(told):]:
            told.append(json.loads(line))
            show(told[-1])

    process = subprocess.Popen([harness.BUILD / 'test_base', '[damage]'], env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None:
        time.sleep(0.2)
        tell_new()
        passed = time.monotonic() - begin
        if passed - said > 10:
            said = passed
            print(f'[{passed:5.0f} s] {len(told)} kinds of damage done', flush=True)
        if passed > seconds:
            process.kill()
            print(f'stopped after {seconds:.0f} s')
    tell_new()
    return told, process.returncode


def show(figures):
    texts = [figures[key] if key in ('what', 'how') else f'{key} {figures[key]}' for key in COLUMNS]
    print('  '.join(texts), flush=True)
    if figures['missed']:
        print(f'  missed, first bits or lengths: {figures["first_missed"]}')


def main():
    options = harness.options(__doc__, bits=harness.LONG, cases=(2, len(CASES)), seconds=3600.0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # scratch folders go
    begin = time.monotonic()
    bits, code = try_bits(options.seconds) if options.bits else ([], 0)
    cases, wrong = try_cases(options.cases) if options.cases else (0, [])
    total = {key: sum(figures[key] for figures in bits) for key in COLUMNS[3:]}
    noticed = total['noticed'] + total['by_the_picture']
    print(f'damage: {total["tried"]} damages, {noticed} noticed ({total["by_the_picture"]} by the picture alone), '
          f'{total["no_effect"]} without effect, {total["missed"]} missed; {cases} damaged checkpoints, '
          f'{len(wrong)} problems, {time.monotonic() - begin:.0f} s')
    nothing = total['tried'] == 0 if options.bits else cases == 0
    if nothing:
        print('FAILED: damage: nothing was tried')
    sys.exit(1 if total['missed'] or wrong or code != 0 or nothing else 0)


if __name__ == '__main__':
    main()
