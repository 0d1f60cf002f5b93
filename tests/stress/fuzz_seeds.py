"""What the fuzz programs begin with: the targets' own seeds, real X-rays and tables, and what the program itself writes.

No program of its own: tests/stress/fuzz calls make_seeds()."""
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LARGEST_SEED = 256 << 10
MOST_SEEDS = 40  # real files of a kind

# Longest inputs, bytes, where 4096 are not enough; a pack begins with a page, a picture is large.
MAX_LEN = {'pack': 16384, 'png': 65536, 'jpeg': 65536, 'deflate': 32768, 'dicom': 131072, 'tar': 8192,
           'tar_gz': 8192, 'line_socket': 80000, 'tfrecord': 8192, 'config': 16384}


def max_len(target):
    return MAX_LEN.get(target, 4096)


def quietly(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', **more)


def small_files(folder, target, *patterns):
    """Up to MOST_SEEDS files of these names that the target takes whole, chosen the same way each time."""
    found = sorted(p for pattern in patterns for p in folder.rglob(pattern) if p.stat().st_size <= max_len(target))
    return random.Random(7).sample(found, min(MOST_SEEDS, len(found)))


def put(seeds, target, name, content):
    folder = seeds / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content[:LARGEST_SEED])


def first_lines(path, count):
    with open(path, 'rb') as file:
        return b''.join(line for _, line in zip(range(count), file))


def real_seeds(xray, seeds):
    for number, path in enumerate(small_files(xray, 'png', '*.png')):
        put(seeds, 'png', f'real-{number}', path.read_bytes())
    for number, path in enumerate(small_files(xray, 'jpeg', '*.jpg', '*.jpeg')):
        put(seeds, 'jpeg', f'real-{number}', path.read_bytes())
    for number, path in enumerate(sorted(xray.rglob('*.dcm'))):
        put(seeds, 'dicom', f'real-{number}', path.read_bytes()[:131072])
    for number, path in enumerate(sorted(xray.rglob('Data_Entry*.csv'))):
        put(seeds, 'manifest', f'nih-{number}', b'\0' + first_lines(path, 20))
    for number, path in enumerate(sorted(xray.rglob('valid.csv')) + sorted(xray.rglob('train.csv'))):
        put(seeds, 'manifest', f'chexpert-{number}', b'\1' + first_lines(path, 10))
    for path in xray.rglob('BBox_List*.csv'):
        put(seeds, 'finding_tables', path.name, first_lines(path, 20))
        put(seeds, 'csv', path.name, first_lines(path, 20))


def sources_seeds(seeds):
    for path in sorted((ROOT / 'configs').rglob('*.yaml')):
        put(seeds, 'yaml', path.name, path.read_bytes())
        put(seeds, 'cluster_file' if path.parent.name == 'clusters' else 'config', path.name, path.read_bytes())


def program_seeds(program, seeds, scratch):
    """What the program itself writes: a phantom set, a pack, shards, an index, a run with a checkpoint, predictions."""
    def run(*words):
        done = quietly('nice', '-n', '15', str(program), *map(str, words), cwd=scratch, timeout=300)
        if done.returncode != 0:
            print(f'fuzz: {program.name} {words[0]} ended with {done.returncode}, so its files are no seeds: '
                  f'{done.stdout[-300:]}')
        return done.returncode == 0

    if not run('phantom', 'set', '--images', 24, '--size', 64):
        return
    quietly('tar', 'cf', 'x.tar', '-C', 'set', 'images', cwd=scratch)
    quietly('tar', 'czf', 'y.tar.gz', '-C', 'set', 'images', cwd=scratch)
    config = '''data:
  manifest: {path: set/Data_Entry_2017.csv}
  images: [%s]
  train_list: set/train_val_list.txt
  test_list: set/test_list.txt
  resize: 36
  crop: 32
model: {arch: densenet121, weights: none}
train: {batch: 4, max_steps: 1, epochs: 9}
run: {dir: run}
eval: {batch: 4, splits: [test]}
launch: {device: cpu, threads: 1, ranks: 1}
'''
    for name, images in (('plain.yaml', 'set/images'), ('tar.yaml', 'x.tar'), ('gz.yaml', 'y.tar.gz')):
        (scratch / name).write_text(config % images)
    run('pack', 'plain.yaml', '--out', 'set.pack')
    run('pack', 'plain.yaml', '--out', 'shards', '--format', 'tfrecord')
    for name in ('tar.yaml', 'gz.yaml'):
        run('inspect', name)
    run('train', 'plain.yaml')
    kinds = {'*.png': 'png', '*.pack': 'pack', '*.tar': 'tar', '*.tar.gz': 'tar_gz', '*.index': 'index',
             'state.json': 'state', 'predictions*.csv': 'predictions', 'Data_Entry*.csv': 'manifest',
             'BBox*.csv': 'finding_tables', '*-of-*': 'tfrecord'}
    for pattern, target in kinds.items():
        for number, path in enumerate(small_files(scratch, target, pattern)):
            head = b'\0' if target == 'manifest' else b''
            put(seeds, target, f'program-{number}', head + path.read_bytes())
            if target == 'state':
                put(seeds, 'checkpoint', f'program-{number}', path.read_bytes())


def make_seeds(options, seeds, programs, chosen):
    """Makes `seeds` anew, a folder for each chosen target; `programs`: the folder of the fuzz programs."""
    shutil.rmtree(seeds, ignore_errors=True)
    for name in set(chosen):
        (seeds / name).mkdir(parents=True)
        quietly(str(programs / f'fuzz_{name}'), '--write-seeds', str(seeds / name),
                env=os.environ | {'LLVM_PROFILE_FILE': '/dev/null'})
    sources_seeds(seeds)
    if options.xray.is_dir():
        real_seeds(options.xray, seeds)
    else:
        print(f'fuzz: no real X-rays at {options.xray}')
    if options.program.exists():
        with tempfile.TemporaryDirectory() as scratch:
            program_seeds(options.program.resolve(), seeds, pathlib.Path(scratch))
    else:
        print(f'fuzz: no program at {options.program}, so none of its files are seeds')
