#!/usr/bin/env python3
"""Crashes the writers of this program at every call that changes a file, and lets every such call fail.

A job writes a checkpoint and metrics.jsonl (train, first), a pack, TFRecord shards (records), an index beside an
archive (index, old_index) or a staged copy (stage). A preloaded library (tests/support/file_points.c) numbers its
calls: open, write, fsync, rename, link, unlink, mkdir, close, ... below the job's folder. Then

  states  for each call, what the folder would be had the process died before it or in the middle of its write, or the
          machine lost power then (folder_model.py: four kinds). What is the same is looked at once. Nothing
          half-written may be taken for whole, the same command must go on by itself, end as the run without a crash
          did (weights equal bit for bit), and leave nothing temporary.
  kills   the process really kills itself at the call; the folder must be what the model says, and the command goes on.
  faults  the call really fails (ENOSPC, EDQUOT and EROFS from there on, EIO once) or writes half of its bytes: the exit
          code is the documented one, the message names a file below the folder, the reason and a hint; the checkpoint
          of before is whole, no temporary file stays (with EROFS none after the next start), the command goes on.

  --jobs, --images  of the data set
  --every N    each N-th state that is before or in a write; all others are taken
  --most N     at most N states of each of the two sorts of a job, spread evenly (-1: all)
  --kills N    so many real kills of a job, and a quarter of it in the middle of writes
  --faults N   at most N fault points of a job; 0 leaves the faults out. --again N: starts again after each N-th
  --seconds S  stops after S seconds and says how far it came
  --no-tmpfile as on a file system that has no files without a name (many network file systems); slow for train and
               first, as each write of a checkpoint then makes another folder
  --keep       what went wrong stays in a folder
Ends with 1 where something was lost or wrong, or of a job nothing was tried. Needs a C compiler."""
import collections
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import crash_jobs
import folder_model
import harness

ERRORS = {'ENOSPC': 'No space left on device', 'EDQUOT': 'Disk quota exceeded', 'EIO': 'Input/output error',
          'EROFS': 'Read-only file system', 'short': ''}


def spread(items, most):
    """At most `most` of them, the first and the last among them."""
    if most < 0 or len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / max(1, most - 1))] for i in range(most)]


class Clock:
    def __init__(self, seconds):
        self.begin, self.seconds, self.said = time.monotonic(), seconds, 0.0

    def passed(self):
        return time.monotonic() - self.begin

    def is_over(self):
        return self.passed() > self.seconds

    def say(self, text):
        if self.passed() - self.said > 5:
            self.said = self.passed()
            print(f'[{self.said:5.0f} s] {text}', flush=True)


class Crashes:
    """One job: its calls, and what becomes of them."""

    def __init__(self, job, library, options, clock):
        self.job, self.library, self.options, self.clock = job, library, options, clock
        self.base = job.base
        self.originals, self.clean = self.base / 'originals', self.base / 'clean'
        shutil.copytree(job.folder, self.originals, symlinks=True)
        self.contents = folder_model.Contents(self.base / 'contents')
        self.problems, self.figures = [], collections.Counter()
        self.runs = 0

    def points(self, do, at=0, stays=False):
        """The environment of one run, whose log is made anew."""
        self.log, self.data = self.base / 'calls', self.base / 'bytes'
        for path in (self.log, self.data):
            path.unlink(missing_ok=True)
        given = {'LD_PRELOAD': str(self.library), 'POINTS_BELOW': str(self.job.folder), 'POINTS_DO': do,
                 'POINTS_AT': str(at), 'POINTS_LOG': str(self.log)}
        if do.startswith('kill') or do == 'record':
            given['POINTS_DATA'] = str(self.data)
        if stays:
            given['POINTS_STAYS'] = '1'
        if not self.options.tmpfile:
            given['POINTS_NO_TMPFILE'] = '1'
        return given

    def restore_cache(self):
        shutil.rmtree(self.base / 'cache/chexnet-train/index', ignore_errors=True)

    def restore(self):
        self.restore_cache()
        folder_model.make_state(self.before, self.job.folder, self.contents, self.originals)

    def problem(self, where, text):
        self.problems.append({'job': self.job.name, 'where': where, 'what': text})
        print(f'WRONG {self.job.name}: {where}: {text}', flush=True)
        if self.options.keep:
            to = pathlib.Path(tempfile.mkdtemp(prefix='crash-')) / 'work'
            shutil.copytree(self.job.folder, to, symlinks=True)
            print(f'  kept in {to}')

    # -- what a run without a crash does

    def record(self):
        model = folder_model.FolderModel(self.job.folder, self.contents, self.base / 'bytes')
        self.before = model.state('killed')
        done = self.job.start(environment=self.points('record'))
        if done.returncode != 0:
            sys.exit(f'{self.job.name} without a fault ended with {done.returncode}\n{done.stderr[-2000:]}')
        shutil.copytree(self.job.folder, self.clean, symlinks=True)
        self.calls = folder_model.read_calls(self.log)
        os.rename(self.data, self.base / 'recorded')
        model.written = open(self.base / 'recorded', 'rb')
        self.collect_states(model)
        ended, model_end = (folder_model.without_logs(state) for state in (
            folder_model.state_of_disk(self.job.folder), model.state('killed')))
        if folder_model.key_of(ended) != folder_model.key_of(model_end):
            self.problem('the model', f'differs from the folder: {first_difference(ended, model_end)}')
        model.close()

    def collect_states(self, model):
        """[(number, kind, call, is_write, state)], each state once."""
        self.states, seen, changed = [], set(), True
        for call in [*self.calls, None]:
            if changed:
                self.add_states(model, call, seen, folder_model.KINDS, '')
            if call is None:
                break
            is_named = '(deleted)' not in call.path
            if call.call == 'write' and is_named and call.count > 1:
                self.add_half(model, call, seen)
            model.apply(call)
            changed = not (call.call in ('write', 'truncate') and not is_named) and call.call != 'close'
            self.figures['points'] += 1
            self.clock.say(f'{self.job.name}: replayed {call.number} of {len(self.calls)} calls')

    def add_states(self, model, call, seen, kinds, part):
        for kind in kinds:
            state = model.state(kind)
            key = folder_model.key_of(state)
            self.figures['crashes'] += 1
            if key in seen:
                continue
            seen.add(key)
            where = f'{part}before call {call.number}, {call}' if call else 'at the end'
            self.states.append((kind, where, call is not None and call.call == 'write', state))

    def add_half(self, model, call, seen):
        node = model.find(call.path)
        if node is None:
            return
        before = bytes(model.writable(node))
        model.write(call, model.bytes_of(call)[:call.count // 2])
        self.add_states(model, call, seen, ('killed',), 'in the middle of the write ')
        model.writable(node)[:] = before

    # -- after a crash

    def go_on(self, where):
        """The same command again, to its end."""
        before = len(self.problems)
        done = self.job.start()
        self.runs += 1
        if done.returncode != 0:
            self.problem(where, f'the next start ended with {done.returncode}: {done.stderr[-600:]}')
            return False
        for text in self.job.compare(self.clean):
            self.problem(where, text)
        for name in self.job.temporary():
            self.problem(where, f'{name} stays after the next start')
        return len(self.problems) == before

    def test_states(self):
        every, most = self.options.every, self.options.most
        others = [s for s in self.states if not s[2]]
        writes = [s for s in self.states if s[2]][::every]
        chosen = spread(others, most) + spread(writes, most)
        self.figures['states'] = len(self.states)
        for i, (kind, where, _, state) in enumerate(chosen):
            if self.clock.is_over():
                return
            where = f'{kind} {where}'
            self.restore_cache()
            folder_model.make_state(state, self.job.folder, self.contents, self.originals)
            for text in self.look(kind):
                self.problem(where, text)
            self.go_on(where)
            self.figures['states tried'] += 1
            self.clock.say(f'{self.job.name}: state {i + 1} of {len(chosen)}, {len(self.problems)} problems')

    def look(self, kind):
        """Where bytes or names were lost, a checkpoint may be broken, but must not be taken for whole: go_on() sees."""
        return self.job.look() if kind == 'killed' else []

    def test_kills(self):
        half = [c for c in self.calls if c.call == 'write' and '(deleted)' not in c.path]
        points = [('kill', c.number) for c in spread(self.calls, self.options.kills)]
        points += [('kill-half', c.number) for c in spread(half, self.options.kills // 4)]
        for how, number in points:
            if self.clock.is_over():
                return
            self.restore()
            model = folder_model.FolderModel(self.job.folder, self.contents, self.base / 'none')
            done = self.job.start(environment=self.points(how, number))
            model.written = open(self.data, 'rb')
            calls = folder_model.read_calls(self.log)
            where = f'{how} at call {number}, {calls[-1]}'
            if done.returncode != -9:
                self.problem(where, f'was not killed: it ended with {done.returncode}')
            for call in calls[:-1]:
                model.apply(call)
            if how == 'kill-half' and calls[-1].call == 'write':
                model.write(calls[-1], model.bytes_of(calls[-1])[:calls[-1].count // 2])
            found, wanted = (folder_model.without_logs(state) for state in (
                folder_model.state_of_disk(self.job.folder), model.state('killed')))
            if folder_model.key_of(found) != folder_model.key_of(wanted):
                self.problem(where, f'the folder is not as the model says: {first_difference(found, wanted)}')
            model.close()
            for text in self.job.look():
                self.problem(where, text)
            self.go_on(where)
            self.figures['kills'] += 1
            self.clock.say(f'{self.job.name}: kill {number}, {len(self.problems)} problems')

    # -- calls that fail

    def fault_points(self):
        """All that are no writes; of writes in a row the first, the middle and the last."""
        points, row = [], []

        def end_row():
            points.extend(sorted({row[0], row[len(row) // 2], row[-1]}) if row else [])
            row.clear()

        last = None
        for call in self.calls:
            place = (call.inode, call.path)
            if call.call != 'write' or place != last:
                end_row()
            last = place if call.call == 'write' else None
            if call.call == 'write':
                row.append(call.number)
            else:
                points.append(call.number)
        end_row()
        return spread(points, self.options.faults if self.options.faults >= 0 else self.options.most)

    def test_faults(self):
        if self.options.faults == 0:
            return
        points = self.fault_points()
        self.figures['fault points'] = len(points)
        for i, number in enumerate(points):
            for error in self.options.errors:
                if self.clock.is_over():
                    return
                if error == 'short' and self.calls[number - 1].call != 'write':
                    continue
                self.test_fault(error, number)
                self.clock.say(f'{self.job.name}: fault point {i + 1} of {len(points)}, {len(self.problems)} problems')

    def test_fault(self, error, number):
        self.restore()
        stays = error in ('ENOSPC', 'EDQUOT', 'EROFS')
        try:
            done = self.job.start(environment=self.points(error, number, stays), timeout=60)
        except subprocess.TimeoutExpired:
            return self.problem(f'{error} at call {number}', 'the program hangs')
        hit = [c for c in folder_model.read_calls(self.log) if c.result == error]
        if not hit:
            self.figures['faults without effect'] += 1
            return None
        where = f'{error} at call {hit[0].number}, {hit[0]}'
        self.figures['faults'] += 1
        self.figures[f'{error}: exit {done.returncode}'] += 1
        for text in self.fault_problems(error, done):
            self.problem(where, text)
        if error != 'EROFS':
            for name in self.job.temporary():
                if not self.job.allowed(name):
                    self.problem(where, f'{name} stays')
        for text in self.job.look():
            self.problem(where, text)
        if error == 'short':
            for text in self.job.compare(self.clean) if done.returncode == 0 else []:
                self.problem(where, text)
        elif number % self.options.again == 0:
            self.go_on(where)
        return None

    def fault_problems(self, error, done):
        codes = {self.job.error_code} | ({9} if error == 'EIO' else set())
        if error == 'short':
            return [] if done.returncode == 0 else [f'ended with {done.returncode}: {done.stderr[-400:]}']
        if done.returncode == 0:
            # An index that cannot be kept is made again; whatever else the disk had no room for is missed.
            kept = error not in ('ENOSPC', 'EDQUOT') or isinstance(self.job, crash_jobs.Index)
            return [] if kept else ['ended with 0, though it could not write']
        text = done.stderr
        problems = [] if done.returncode in codes else [f'ended with {done.returncode}, not {sorted(codes)}']
        if ERRORS[error] not in text:
            problems.append('the reason is not named')
        if 'Hint: ' not in text:
            problems.append('there is no hint')
        if str(self.job.folder) not in text:
            problems.append('no file is named')
        return [f'{p}: {text[-500:]}' for p in problems]


def first_difference(found, wanted):
    for path in sorted({*found, *wanted}):
        if (found.get(path) or ())[:2] != (wanted.get(path) or ())[:2]:
            return f'{path}: {found.get(path)} on disk, {wanted.get(path)} wanted'
    return 'none'


def main():
    options = harness.options(__doc__, jobs=(['old_index', 'train'], list(crash_jobs.JOBS)), images=(20, 40), every=(1, 10), most=(2, -1),
                              kills=(1, 20), faults=(1, -1), errors=(['ENOSPC'], list(ERRORS)), again=(1, 3), seconds=(300.0, 1700.0),
                              keep=False, tmpfile=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the scratch folder goes
    clock = Clock(options.seconds)
    scratch = tempfile.mkdtemp(prefix='chexnet-crash-')
    total, problems = collections.Counter(), []
    try:
        library = pathlib.Path(scratch) / 'file_points.so'
        subprocess.run(['cc', '-O1', '-shared', '-fPIC', str(harness.ROOT / 'tests/support/file_points.c'), '-o', str(library),
                        '-ldl', '-lpthread'], check=True)
        for name in options.jobs:
            if clock.is_over():
                print(f'FAILED: {name}: no time was left')
                problems.append({'job': name, 'what': 'no time was left'})
                continue
            job = crash_jobs.JOBS[name](pathlib.Path(scratch) / name, options.images)
            crashes = Crashes(job, library, options, clock)
            crashes.record()
            crashes.test_states()
            crashes.test_kills()
            crashes.test_faults()
            total.update(crashes.figures)
            problems += crashes.problems
            if not any(crashes.figures[what] for what in ('states tried', 'kills', 'faults')):
                print(f'FAILED: {name}: nothing was tried')
                problems.append({'job': name, 'what': 'nothing was tried'})
            print(f'{name}: ' + ', '.join(f'{value} {key}' for key, value in crashes.figures.items()) +
                  f', {len(crashes.problems)} problems', flush=True)
            shutil.rmtree(job.base, ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f'crash_points: {total["points"]} calls, {total["crashes"]} crashes of {total["states"]} different folders, '
          f'{total["states tried"]} of them gone on with, {total["kills"]} real kills, {total["faults"]} faults, '
          f'{len(problems)} problems, {clock.passed():.0f} s' + (' (stopped by --seconds)' if clock.is_over() else ''))
    sys.exit(1 if problems else 0)


if __name__ == '__main__':
    main()
