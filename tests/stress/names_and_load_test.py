#!/usr/bin/env python3
"""Gives the program long tables, many files and shards, odd names and many ranks.

--jobs, all of them if not said otherwise:
- names: pictures whose names have spaces, quotes, line ends, Unicode, … as files of a folder and as members of a tar,
  in a folder and with a config and a run folder of such names. Each set is trained for two steps, evaluated and
  predicted, and all names must come back as they were. With --each-name every name is also tried by itself, as that of
  the folder, of the config and of the run.
- rows: a table of so many rows, of which 16 have a picture, is read by `inspect`.
- files: two steps on a folder of so many pictures (hard links to few), all in its table.
- shards: so many TFRecord shards, and so many tar archives, of one picture each, two steps.
- ranks: `doctor` on so many ranks of this machine.
- hosts: long alone, a simulated cluster of a thousand hosts for an hour, and 10^6 host-hours of it where a host is silent
  (CHEXNET_SIMULATED_S, CHEXNET_HOST_HOURS); the unit tests do so for a moment.

Time and the largest memory of a process (ru_maxrss) are printed, nothing is asserted of them. Exit code 1: a command
failed, or a name or a count did not come back."""
import csv
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import harness

FINDINGS = ['Mass, "left"', 'Größe 🫁 | $x']
PICTURES = 16
NAMES = {
    'spaces': 'a  b ',
    'single quote': "it's",
    'double quote': 'say "A"',
    'line end': 'two\nlines',
    'carriage return': 'two\rlines',
    'tab': 'a\tb',
    'comma': 'a,b;c',
    'accents': 'Größe_é',
    'combining accent': 'e\u0301',
    'other scripts': '胸部_صدر_грудь',
    'beyond 16 bits': '🫁',
    'shell': '$HOME`id`$(id);&|<>*?![]{}~',
    'backslash': 'a\\b\\n',
    'percent': '%s%20%n',
    'hash and colon': 'a: b #c',
    'dash first': '--out',
    'at first': '@list',
    'long': 'n' * 200,
}
NOT_IN_A_PATH = ('long', 'dash first', 'at first')  # of all names together
NOT_UTF8 = 'caf\udce9.png'
BLANK_FIRST = ' a.png'  # a table's cells are read without the blanks around them, so it cannot name this one


class Failures(list):
    def note(self, text):
        self.append(text)
        print(f'FAILED: {text}', flush=True)


class Program:
    """Runs a command of the program; its seconds and memory are kept."""

    def __init__(self, folder):
        self.path, self.folder = harness.PROGRAM, folder
        self.environment = dict(os.environ, XDG_CONFIG_HOME=str(folder / 'keys'), XDG_CACHE_HOME=str(folder / 'cache'),
                                OMPI_MCA_btl_base_warn_component_unused='0')

    def run(self, *arguments, before=(), limit_s=3000):
        """Exit code, output, errors, seconds, and the most memory in MB of one of its processes."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([*before, str(self.path), *map(str, arguments)], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=self.environment, cwd=self.folder)
            _, status, usage = wait_for(process, limit_s)
            out.seek(0)
            err.seek(0)
            text, errors = (file.read().decode(errors='replace') for file in (out, err))
        return os.waitstatus_to_exitcode(status), text, errors, time.monotonic() - began, usage.ru_maxrss / 1024


def wait_for(process, limit_s):
    """As os.wait4; a process that runs longer is killed."""
    end = time.monotonic() + limit_s
    while True:
        found = os.wait4(process.pid, os.WNOHANG)
        if found[0]:
            process.returncode = 0  # reaped here
            return found
        if time.monotonic() > end:
            process.kill()
        time.sleep(0.01)


def config_text(table, images, more=''):
    quoted = [json.dumps(str(text), ensure_ascii=False) for text in (table, images)]
    return (f'data:\n  manifest: {{format: csv, path: {quoted[0]}}}\n  images: [{quoted[1]}]\n'
            f'  resize: 36\n  crop: 32\n  val_fraction: 0.25\n{more}'
            'model: {arch: densenet121, weights: none}\n'
            'train: {batch: 4, max_steps: 2, epochs: 100}\n'
            'eval: {batch: 8, splits: [], every_epochs: 0, examples: 0}\n'
            'launch: {device: cpu, threads: 1, ranks: 1}\n')


def write_table(path, names, findings=None):
    with open(path, 'w', newline='', errors='surrogateescape') as file:
        writer = csv.writer(file)
        findings = findings or FINDINGS
        writer.writerow(['image', *findings])
        for number, name in enumerate(names):
            writer.writerow([name, *(number >> bit & 1 for bit in range(len(findings)))])


def read_table(path):
    """Names of the images in their order, and of the columns."""
    with open(path, newline='', errors='surrogateescape') as file:
        rows = list(csv.DictReader(file))
    return sorted(row['image'] for row in rows), list(rows[0]) if rows else []


def draw_pictures(program, folder):
    """The bytes of some pictures."""
    program.run('phantom', folder, '--images', PICTURES, '--size', 64)
    return [path.read_bytes() for path in sorted((folder / 'images').glob('*.png'))]


def write_tar(path, names, pictures):
    with tarfile.open(path, 'w') as archive:
        for number, name in enumerate(names):
            data = pictures[number % len(pictures)]
            member = tarfile.TarInfo('images/' + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def write_folder(folder, names, pictures):
    folder.mkdir()
    for number, name in enumerate(names):
        (folder / name).write_bytes(pictures[number % len(pictures)])
    return folder


def write_images(kind, root, names, pictures, program):
    """Where they are, as the config has it."""
    if kind == 'tar':
        return write_tar(root / 'images.tar', names, pictures)
    folder = write_folder(root / 'images', names, pictures)
    if kind == 'folder':
        return folder
    config = root / 'pack.yaml'
    write_table(root / 'pack.csv', names)
    config.write_text(config_text(root / 'pack.csv', folder))
    out = root / ('images.pack' if kind == 'pack' else 'records')
    program.run('pack', config, '--out', out, '--format', 'pixels' if kind == 'pack' else 'tfrecord')
    return out


def refuse(program, failures, what, code, parts, *arguments):
    found, _, errors, _, _ = program.run(*arguments)
    if found != code or any(part not in errors for part in [*parts, 'Hint: ']):
        return failures.note(f'{what}: {arguments[0]} ended with {found}: {errors[-600:]}')
    print(f'ok: {what}: refused', flush=True)


def try_names(program, failures, pictures, what, root, kind, names, config_name, run_name):
    """Two steps, an evaluation of the whole table, a prediction of all pictures: the first thing that is wrong."""
    root.mkdir(parents=True)
    images = write_images(kind, root, names, pictures, program)
    table, config, run = root / 'table.csv', root / config_name, root / run_name
    write_table(table, names)
    config.write_text(config_text(table, images))
    scores, predictions = root / 'scores.csv', root / 'predictions.csv'
    for command in (['train', config, '--out', run],
                    ['evaluate', run, '--manifest', table, '--images', images, '--set', 'data.manifest.format=csv',
                     '--out', scores],
                    ['predict', run, images, '--out', predictions]):
        code, _, errors, _, _ = program.run(*command)
        if code != 0:
            return failures.note(f'{what}: {command[0]} ended with {code}: {errors[-600:]}')
    for path, shown in ((scores, 'evaluate'), (predictions, 'predict')):
        found, columns = read_table(path)
        for finding in FINDINGS:
            if not any(finding in column for column in columns):
                return failures.note(f'{what}: {shown} has the columns {columns}')
        if shown == 'predict':
            found = sorted(name.rsplit('/', 1)[-1] for name in found)
        if found != sorted(names):
            wrong = sorted(set(found) ^ set(names))
            return failures.note(f'{what}: {shown} gave back other names: {wrong[:4]}')
    print(f'ok: {what}', flush=True)


def try_refusals(program, failures, pictures, root):
    root.mkdir()
    names = [many(number) for number in range(PICTURES)]
    images = write_folder(root / 'images', [*names, BLANK_FIRST, 'two\nlines.png'], pictures)
    config, table = root / 'small.yaml', root / 'table.csv'
    config.write_text(config_text(table, images))
    train = ['train', config, '--out', root / 'run']
    write_table(table, [*names, BLANK_FIRST])
    refuse(program, failures, 'a picture whose name begins with a blank', 8, [f'table.csv:{len(names) + 2}'], *train)
    write_table(table, names, [*FINDINGS, 'two\nlines'])
    refuse(program, failures, 'a finding with a line end', 3, ['table.csv', 'two\\x0alines'], *train)
    write_table(table, [*names, NOT_UTF8])
    refuse(program, failures, 'a table that is not UTF-8', 3, ['table.csv:18: is not UTF-8'], *train)
    write_table(table, [*names, 'two\nlines.png'])
    refuse(program, failures, 'a line end in a pack', 3, ['line break'], 'pack', config, '--out', root / 'images.pack')


def many(number):
    return f'{number:08d}.png'


def job_names(program, options, failures, pictures):
    folder = program.folder / 'names'
    names = [f'{name}.png' for name in NAMES.values()]
    together = ''.join(name for key, name in NAMES.items() if key not in NOT_IN_A_PATH)
    tried = 0
    for kind in ('folder', 'tar', 'tfrecord', 'pack'):
        # A pack refuses a line end.
        held = [name for name in names if kind != 'pack' or '\n' not in name]
        tried += len(held)
        try_names(program, failures, pictures, f'all names in a {kind}', folder / together / kind, kind, held,
                  f'{together}.yaml', f'run {together}')
    try_refusals(program, failures, pictures, folder / 'refused')
    if options.each_name:
        plain = [f'{number}.png' for number in range(PICTURES)]
        for key, name in NAMES.items():
            try_names(program, failures, pictures, f'a folder, config and run called after: {key}', folder / name,
                      'folder', plain, f'{name}.yaml', name + '.run')
            tried += 1
    print(f'{tried} names and places of names', flush=True)


def inspect(program, failures, what, config):
    """The object that inspect prints."""
    code, out, errors, seconds, memory_mb = program.run('inspect', config, '--threads', 1, '--json')
    print(f'| {what} | {seconds:.1f} | {memory_mb:.0f} |', flush=True)
    if code not in (0, 3):
        failures.note(f'{what}: inspect ended with {code}: {errors[-600:]}')
        return {}
    return json.loads(out)


def job_rows(program, options, failures, pictures):
    for rows in options.rows:
        root = program.folder / f'rows-{rows}'
        root.mkdir()
        names = [many(number) for number in range(rows)]
        images = write_folder(root / 'images', names[:PICTURES], pictures)
        write_table(root / 'table.csv', names)
        config = root / 'small.yaml'
        config.write_text(config_text(root / 'table.csv', images))
        said = inspect(program, failures, f'{rows:,} rows', config)
        if said and len(said['missing']) != rows - PICTURES:
            failures.note(f'{rows} rows: {len(said["missing"])} are missing')
        shutil.rmtree(root)


def job_files(program, options, failures, pictures):
    for files in options.files:
        root = program.folder / f'files-{files}'
        images = root / 'images'
        images.mkdir(parents=True)
        # A file system has a limit of links to one file (ext4: 65,000).
        for number in range(files):
            source = images / many(number - number % 60000)
            if number % 60000 == 0:
                source.write_bytes(pictures[0])
            else:
                os.link(source, images / many(number))
        write_table(root / 'table.csv', [many(number) for number in range(files)])
        config = root / 'small.yaml'
        config.write_text(config_text(root / 'table.csv', images))
        what = f'{files:,} files'
        train_on(program, failures, what, config, root / 'run')
        shutil.rmtree(root)


def train_on(program, failures, what, config, out):
    """Two steps on them."""
    code, _, errors, seconds, memory_mb = program.run('train', config, '--out', out)
    print(f'| {what}, two steps | {seconds:.1f} | {memory_mb:.0f} |', flush=True)
    if code != 0:
        failures.note(f'{what}: train ended with {code}: {errors[-600:]}')


def write_archives(folder, names, picture):
    folder.mkdir()
    for name in names:
        write_tar(folder / f'{name}.tar', [name], [picture])


def job_shards(program, options, failures, pictures):
    for shards in options.shards:
        root = program.folder / f'shards-{shards}'
        images = root / 'images'
        images.mkdir(parents=True)
        names = [many(number) for number in range(shards)]
        for number, name in enumerate(names):
            (images / name).write_bytes(pictures[number % len(pictures)])
        write_table(root / 'table.csv', names)
        packing = root / 'pack.yaml'
        packing.write_text(config_text(root / 'table.csv', images))
        code, _, errors, _, _ = program.run('pack', packing, '--out', root / 'records', '--format', 'tfrecord',
                                            '--per-shard', 1, '--threads', 1)
        made = len(list((root / 'records').glob('*'))) if code == 0 else 0
        if made < shards:
            failures.note(f'{shards} shards: pack ended with {code} and {made} shards: {errors[-600:]}')
        write_archives(root / 'archives', names, pictures[0])
        for kind in ('records', 'archives'):
            config = root / f'{kind}.yaml'
            config.write_text(config_text(root / 'table.csv', root / kind))
            what = f'{shards:,} {"TFRecord shards" if kind == "records" else "tar archives"}'
            train_on(program, failures, what, config, root / f'run-{kind}')
        shutil.rmtree(root)


def job_ranks(program, options, failures, pictures):
    root = ['--allow-run-as-root'] if os.geteuid() == 0 else []
    for ranks in options.ranks:
        launcher = ['mpirun', '--oversubscribe', '--map-by', 'socket', *root, '-np', str(ranks)]
        code, out, errors, seconds, memory_mb = program.run('doctor', '--json', before=launcher)
        print(f'| doctor, {ranks} ranks | {seconds:.1f} | {memory_mb:.0f} |', flush=True)
        try:
            said = json.loads(out)
        except ValueError:
            failures.note(f'doctor, {ranks} ranks: ended with {code} and no JSON: {errors[-600:]}')
            continue
        # A machine with too few cores for them is another finding, and no failure here.
        seen = sum(check['name'].startswith('rank ') for check in said['checks'])
        if code not in (0, 5) or seen < ranks:
            failures.note(f'doctor, {ranks} ranks: ended with {code} and named {seen} of them')


def job_hosts(program, options, failures, pictures):
    tests = ['*among a thousand*', 'a thousand hosts*', 'who is called dead*', 'what is left out of a simulation*']
    environment = {'CHEXNET_HOST_HOURS': '1000000', **os.environ}
    if harness.LONG and subprocess.run([harness.BUILD / 'test_base', ','.join(tests)], env=environment).returncode != 0:
        failures.note('a simulated cluster')


JOBS = {'names': job_names, 'rows': job_rows, 'files': job_files, 'shards': job_shards, 'ranks': job_ranks, 'hosts': job_hosts}


def main():
    options = harness.options(__doc__, jobs=list(JOBS), rows=([1000], [1000000]), files=([300], [112120, 1000000]), shards=([40], [10000]),
                              ranks=([8], [64]), each_name=harness.LONG)
    if unknown := set(options.jobs) - set(JOBS):
        sys.exit(f'error: {unknown} is no job. Hint: {", ".join(JOBS)}')
    folder = pathlib.Path(tempfile.mkdtemp(prefix='load-'))

    def interrupted(number, _):
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, interrupted)
    program, failures = Program(folder), Failures()
    pictures = draw_pictures(program, folder / 'set')
    print('| what | seconds | memory, MB |\n|---|---|---|', flush=True)
    for job in options.jobs:
        JOBS[job](program, options, failures, pictures)
    if failures:
        print(f'kept: {folder}')
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


sys.exit(main())
