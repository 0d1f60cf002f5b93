"""What the programs of scripts/bench share: commands and their memory, rounds in turn, and a network to score with."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get('CHEXNET_PROGRAM', f'{ROOT}/build/release/chexnet-train')
PYTHON = os.environ.get('PYTHON', 'python3')
# Untouched NIH files.
ORIGINALS = os.environ.get('CHEXNET_XRAY_DIR', f'{ROOT}/../shared/xray') + '/nih1024_raw'


def parser_of(doc):
    """Of a script whose text has its usage after 'usage: '."""
    description, usage = doc.split('usage: ')
    return argparse.ArgumentParser(description=description, usage=usage.rstrip().replace('%', '%%'))


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'{value} is less than 1')
    return value


def output_file(text):
    """Where a file can be written, told before hours are measured for it."""
    folder = os.path.dirname(os.path.abspath(text))
    if os.path.isdir(text) or not os.access(text if os.path.exists(text) else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f'{text} cannot be written')
    return os.path.abspath(text)


def need_program():
    if not shutil.which(PROGRAM):
        sys.exit(f'{PROGRAM} is no program. Hint: scripts/build release, or set CHEXNET_PROGRAM')


def need_python(package=None):
    if not shutil.which(PYTHON):
        sys.exit(f'{PYTHON} is no program: set PYTHON')
    if package and not has(package):
        sys.exit(f'{PYTHON} has no {package}: set PYTHON')


def start(main):
    """Without a traceback where it is stopped; temporary folders are removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(f'{os.path.basename(sys.argv[0])}: stopped')


def run(*command):
    """Output and peak MB of a command."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = []
    drain = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)
    drain.start()
    try:
        out = process.stdout.read()
        drain.join()
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:
        process.terminate()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f'{" ".join(command)}\nended with {process.returncode}\n{errors[0][-2000:]}')
    return out, usage.ru_maxrss / 1024


def has(packages, python=PYTHON):
    return subprocess.run([python, '-c', f'import {packages}'], stderr=subprocess.DEVNULL).returncode == 0


def in_turn(measures, rounds):
    """{name: [result of each round]} of {name: what measures it}; a result has images_per_s. A line per run as it ends."""
    results = {name: [] for name in measures}
    for number in range(rounds):
        for name, measure in measures.items():
            results[name].append(measure())
            rate = results[name][-1]['images_per_s']
            print(f'round {number + 1}: {name}: {rate:.2f} images/s', file=sys.stderr, flush=True)
    return results


def median(results, name, key='images_per_s'):
    return statistics.median(result[key] for result in results[name])


def rate_row(results, name):
    rates = [result['images_per_s'] for result in results[name]]
    return f'  {name:38s} {statistics.median(rates):8.2f} images/s ({min(rates):.2f} to {max(rates):.2f})'


def ceiling_share(bench, time):
    """Multiply-adds of the direct algorithm in the time that `bench` (the JSON of bench step or infer) has under `time`, as a
    fraction of what the same threads reached in a loop of nothing else. Above 1 where an algorithm needs fewer."""
    gflop = sum(row['gflop_per_s'] * row[time] for row in bench['layers'])
    return gflop / (bench[time]['median'] * bench['ceilings']['fma_gflop_per_s'])


def save(path, results):
    """{name: {key: [of each round]}} of what in_turn returned; nothing where `path` is None."""
    if path:
        keys = {name: {key: [result[key] for result in rounds] for key in rounds[0]} for name, rounds in results.items()}
        pathlib.Path(path).write_text(json.dumps(keys, indent=1) + '\n')


def trained_run(folder, size):
    """A run folder: DenseNet-121 after one step on a phantom set. For its speed, not for its scores."""
    images = f'{folder}/set'
    run(PROGRAM, 'phantom', images, '--images', '40', '--size', '64')
    settings = {
        'model.arch': 'densenet121', 'model.weights': 'none', 'data.manifest.path': f'[{images}/Data_Entry_2017.csv]',
        'data.images': f'[{images}/images]', 'data.train_list': f'{images}/train_val_list.txt', 'data.val_fraction': '0',
        'data.resize': size, 'data.crop': size, 'train.batch': 4, 'train.max_steps': 1, 'eval.splits': '[]'}
    config = f'{folder}/config.yaml'
    pathlib.Path(config).touch()
    run(PROGRAM, 'train', config, '--out', f'{folder}/run', *(w for key in settings for w in ('--set', f'{key}={settings[key]}')))
    return f'{folder}/run'
