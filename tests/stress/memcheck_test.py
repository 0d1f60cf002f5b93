#!/usr/bin/env python3
"""Trains for some steps under valgrind's memcheck: whose leaks and wrong accesses are there?

Two phantom images of 32 pixels a step and rank, a checkpoint every third step and an evaluation; or `predict` on eight
images with a model of such a run. A finding is of the object that made the access or asked for the memory: the
innermost one that is not of the C or C++ library. Whatever reads or writes where it must not counts as ours where any
of our frames is in its stack. Libraries are built without debug symbols, and some leave memory to the end of the
process on purpose, so what is theirs is listed and no failure.

In a long run: training on one rank and on two, a prediction, and a leak that is planted and must be found, 45 minutes; half a
minute a step. With options one of these. Exit code 1: a finding of ours, or the program ended with an error. It needs
valgrind."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import harness

STANDARD = re.compile(r'vgpreload_|libc\.so|libstdc\+\+|ld-linux|libpthread')
PREDICTED = 8  # images
ACCESSES = ('InvalidRead', 'InvalidWrite', 'InvalidFree', 'MismatchedFree', 'InvalidJump', 'Overlap')


def frames_of(error):
    """(object, function) of the first stack, innermost first."""
    stack = error.find('stack')
    return [(os.path.basename(frame.findtext('obj') or ''), frame.findtext('fn') or '?') for frame in stack]


def owner_of(frames):
    """The object and function that a finding is laid to."""
    return next((frame for frame in frames if frame[0] and not STANDARD.search(frame[0])), ('?', '?'))


def reports_of(folder):
    """The whole reports of valgrind. A process that a rank forked ends in another program or by KILL."""
    whole = []
    for path in sorted(folder.glob('report-*.xml')):
        try:
            root = xml.etree.ElementTree.parse(path).getroot()
        except xml.etree.ElementTree.ParseError:
            continue
        whole += [root] if root.find("status[state='FINISHED']") is not None else []
    return whole


def findings_of(reports, program):
    """`program`: the name of the object that is ours, besides our plug-ins."""
    is_ours = re.compile(rf'^({re.escape(program)}$|libchexnet_)').match
    found = collections.Counter()
    for error in (error for report in reports for error in report.iter('error')):
        kind = error.findtext('kind')
        frames = frames_of(error)
        owner = owner_of(frames)
        if kind in ACCESSES:
            owner = next((frame for frame in frames if is_ours(frame[0])), owner)
        size = int(error.findtext('xwhat/leakedbytes') or 0)
        found[(bool(is_ours(owner[0])), kind, *owner)] += size or 1
    return found


def run(stage, program, ranks, arguments, log):
    """The exit code, and valgrind's reports."""
    root = ['--allow-run-as-root'] if os.geteuid() == 0 else []
    launcher = ['mpirun', '--oversubscribe', '--map-by', 'socket', *root, '-np', str(ranks)] if ranks > 1 else []
    command = [*launcher, 'valgrind', '--leak-check=full', '--show-leak-kinds=definite', '--errors-for-leak-kinds=definite',
               '--num-callers=40', '--xml=yes', f'--xml-file={stage.folder}/report-%p.xml', program, *arguments]
    with open(log, 'w') as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                                   env={**os.environ, 'OMP_WAIT_POLICY': 'passive'})
        began = told = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.5)
                if time.monotonic() - told > 10:
                    told = time.monotonic()
                    lines = log.read_text(errors='replace').splitlines()
                    print(f'{told - began:6.0f} s  {lines[-1] if lines else "starts"}', flush=True)
        finally:  # a signal ends this script
            if process.poll() is None:
                process.terminate()
                process.wait()
    return process.returncode, reports_of(stage.folder)


LEAK = """__attribute__((noinline)) char* take() { return new char[333]; }
int main() {
  volatile char* lost = take();
  lost[0] = 1;
  lost = nullptr;
}
"""


def check(command, ranks, steps, program=harness.PROGRAM):
    """What is wrong."""
    stage = harness.Stage('memcheck', [f'train.batch={2 * ranks}', f'train.max_steps={steps}', 'launch.timeout_s=1800'])
    with open(program, 'rb') as file:
        if file.read(4) != b'\x7fELF':
            sys.exit(f'error: {program} is a script, and valgrind would watch its interpreter')
    run_folder, log = stage.folder / 'run', stage.folder / 'log'
    arguments = ['train', stage.config, '--out', run_folder, *[w for word in stage.settings for w in ('--set', word)]]
    if command == 'predict':
        subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        images = sorted((stage.folder / 'set/images').iterdir())[:PREDICTED]
        arguments = ['predict', run_folder, *images, '--out', stage.folder / 'scores.csv']
    code, reports = run(stage, program, ranks, arguments, log)
    found, problems = findings_of(reports, program.name), []
    for (ours, kind, where, function), count in sorted(found.items(), reverse=True):
        amount = f'{count} bytes' if kind.startswith('Leak') else f'{count} times'
        text = f'{kind}, {amount}: {function} of {where}'
        print(('ours: ' if ours else 'a library: ') + text)
        problems += [text] if ours else []
    if code != 0:
        problems.append(f'the program ended with {code}; its output is {log}')
    if len(reports) < ranks:
        problems.append(f'valgrind wrote {len(reports)} whole reports of {ranks} ranks into {stage.folder}')
    print(f'memcheck: {command}, {steps} steps, ranks: {ranks}: {len(problems)} findings of ours, '
          f'{sum(not key[0] for key in found)} of libraries', flush=True)
    stage.close(keep=problems and program == harness.PROGRAM)
    return problems


def finds_a_leak():
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / 'chexnet-train'
        compiler = ['g++', '-std=c++20', '-O0', '-x', 'c++', '-', '-o', program]
        subprocess.run(compiler, input=LEAK, text=True, check=True)
        return any('Leak_DefinitelyLost, 333 bytes: take() of chexnet-train' in text for text in check('train', 1, 1, program))


def main():
    options = harness.options(__doc__, command='train', ranks=1, steps=20)
    harness.skip_unless_long()
    if not shutil.which('valgrind'):
        print('skipped: valgrind is not installed (scripts/setup --dev)')
        return harness.SKIPPED
    if sys.argv[1:]:
        problems = check(options.command, options.ranks, options.steps)
    else:
        problems = check('train', 1, options.steps) + check('predict', 1, options.steps) + check('train', 2, options.steps)
        problems += [] if finds_a_leak() else ['a planted leak is not found']
    for problem in problems:
        print(f'FAILED: {problem}')
    return 1 if problems else 0


sys.exit(main())
