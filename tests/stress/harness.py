"""What the stress programs share. Each takes its length from $CHEXNET_LONG: short as a test, long where it is set. They are
run by ctest (label stress) or by themselves from anywhere: tests/stress/kill_storm_test.py --help. CHEXNET_BUILD is the build
folder (default: build/release), CHEXNET_PROGRAM another chexnet-train.

A Stage draws a phantom set and trains it once without a disturbance, which gives the files that every disturbed run must
end with, and the length in which moments are drawn. A Run is one start of such a training. Its processes are found by a
variable of their environment, so nobody else's are ever touched."""
import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = bool(os.environ.get('CHEXNET_LONG'))
BUILD = pathlib.Path(os.environ.get('CHEXNET_BUILD') or ROOT / 'build/release').resolve()
PROGRAM = pathlib.Path(os.environ.get('CHEXNET_PROGRAM') or BUILD / 'chexnet-train').resolve()
SKIPPED = 77  # exit code
os.environ['LC_ALL'] = 'C.UTF-8'
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')  # tests share cores: a thread that waits is not to spin
MARK = 'CHEXNET_STRESS_RUN'
SHARED = pathlib.Path('/dev/shm')
OWN_SHARED_MEMORY = 'CHEXNET_STRESS_OWN_SHM'
CONFIG = '''
data:
  manifest: {{path: {set}/Data_Entry_2017.csv}}
  images: [{set}/images]
  train_list: {set}/train_val_list.txt
  test_list: {set}/test_list.txt
  resize: 36
  crop: 32
  train_crop: random
  rotate_deg: 5
model: {{arch: densenet121, weights: none}}
train: {{batch: 8, max_steps: 12, epochs: 100}}
run: {{log_every: 1}}
checkpoint: {{every_steps: 3}}
eval: {{batch: 8, splits: [test], examples: 2}}
launch: {{device: cpu, threads: 1, timeout_s: 60}}
'''


def take_own_shared_memory(*namespaces):
    """As root the program goes on in a mount namespace with an empty /dev/shm, where no other run leaves files.

    `namespaces`: more of them, as unshare's options.
    """
    if os.environ.get(OWN_SHARED_MEMORY) or os.geteuid() != 0 or shutil.which('unshare') is None:
        return
    unshare = ['unshare', '--mount', *namespaces]
    probe = [*unshare, 'mount', '-t', 'tmpfs', 'tmpfs', str(SHARED)]
    if subprocess.run(probe, stderr=subprocess.DEVNULL).returncode != 0:
        return
    os.environ[OWN_SHARED_MEMORY] = '1'
    script = f'mount -t tmpfs tmpfs {SHARED} && exec "$0" "$@"'
    os.execvp('unshare', [*unshare, 'bash', '-c', script, sys.executable, *sys.argv])


@dataclasses.dataclass
class Process:
    pid: int
    kind: str  # rank, mpirun, parent (or a process that trains alone), tidier, other
    rank: int = -1


def read_process(pid, mark):
    """The process, where it belongs to the run; a zombie has no environment and belongs to none."""
    try:
        environ = pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0')
        if f'{MARK}={mark}'.encode() not in environ:
            return None
        name = pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
    except OSError:
        return None
    if name == 'chexnet-tidy':
        return Process(pid, 'tidier')
    for entry in environ:
        if entry.startswith(b'OMPI_COMM_WORLD_RANK='):
            return Process(pid, 'rank', int(entry.split(b'=')[1]))
    if name in ('mpirun', 'orterun', 'prterun', 'mpiexec', 'orted', 'prted'):
        return Process(pid, 'mpirun')
    return Process(pid, 'parent' if name.startswith('chexnet') else 'other')


class Run:
    """One start. `how`: mpirun, parent (the program starts its ranks) or alone (one process)."""

    def __init__(self, stage, folder, how, ranks, resume=False, settings=()):
        self.stage, self.folder, self.how = stage, folder, how
        self.goes_on_from = newest_checkpoint(folder) if resume else 0
        stage.latest = self
        self.mark = f'{os.getpid()}-{stage.next_mark()}'
        self.tmp = folder.parent / 'tmp'
        self.tmp.mkdir(exist_ok=True)
        command = [*stage.before, str(stage.program), 'train', str(stage.config), '--out', str(folder)]
        command += stage.arguments
        if resume:
            command += ['--resume', 'auto']
        for setting in [*stage.settings, *settings]:
            command += ['--set', setting]
        if how == 'mpirun':
            root = ['--allow-run-as-root'] if os.geteuid() == 0 else []
            command = ['mpirun', '--map-by', 'socket', '--oversubscribe', *root, '-np', str(ranks), *command]
        else:
            command += ['--ranks', str(ranks)]
        env = dict(os.environ, TMPDIR=str(self.tmp), XDG_CONFIG_HOME=str(stage.folder / 'config'),
                   XDG_CACHE_HOME=str(stage.folder / 'cache'), OMPI_MCA_btl_base_warn_component_unused='0')
        env[MARK] = self.mark
        with open(folder.parent / 'log', 'ab') as log:
            log.write(f'\n$ {" ".join(command)}\n'.encode())
            log.flush()
            self.began = time.monotonic()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def code(self):
        """The exit code as a shell has it; None while it runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def age(self):
        return time.monotonic() - self.began

    def processes(self):
        self.process.poll()  # reaped, it is no zombie
        found = [read_process(int(name), self.mark) for name in os.listdir('/proc') if name.isdigit()]
        return [process for process in found if process]

    def wait(self, limit_s):
        """The exit code; None when it runs longer, and then it is ended."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if self.code() is not None:
                return self.code()
            time.sleep(0.01)
        self.end()
        return None

    def end(self):
        while found := self.processes():
            for process in found:
                if process.kind != 'tidier':  # it ends after mpirun
                    send(process.pid, signal.SIGKILL)
            time.sleep(0.02)

    def wait_until(self, true, limit_s):
        """Whether `true()` came before the run's end."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if true():
                return True
            if self.code() is not None:
                return False
            time.sleep(0.002)
        return False

    def wait_for_age(self, seconds):
        return self.wait_until(lambda: self.age() >= seconds, seconds + 1)

    def last_step(self):
        return max((line['step'] for line in metrics(self.folder) if line['event'] == 'train'), default=0)

    def went_on(self):
        """An empty text when a resumed run, which has trained, began at the newest checkpoint that was there."""
        steps = [line['step'] for line in metrics(self.folder) if line['event'] in ('start', 'restart')]
        began = steps[-1] if steps else 0
        return '' if began == self.goes_on_from else f'it began at step {began}, behind a checkpoint of {self.goes_on_from}'

    def has_partial_checkpoint(self):
        return any(is_partial(name) for name in names(self.folder / 'checkpoints'))

    def is_tidied(self):
        """Whether somebody removes MPI's files after mpirun: a plain mpirun has nobody until the program runs."""
        return self.how != 'mpirun' or any(process.kind == 'tidier' for process in self.processes())

    def victim(self, kind, rng):
        """Somebody of this kind; while there is none yet, who will start it."""
        found = self.processes()
        for wanted in (kind, 'mpirun', 'parent', 'rank'):
            of_kind = sorted((p for p in found if p.kind == wanted), key=lambda p: (p.rank, p.pid))
            if of_kind:
                return rng.choice(of_kind)
        return None


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def newest_checkpoint(folder):
    """Its step; 0 where there is none. Its folder has the name once it is whole."""
    found = [re.fullmatch(r'step-(\d+)', name) for name in names(folder / 'checkpoints')]
    return max((int(match[1]) for match in found if match), default=0)


def is_partial(name):
    return re.fullmatch(r'\.step-\d+\.tmp|\..+\.partial|\.(last|best)\.tmp', name) is not None


def partial_files(folder):
    """What a write that was cut short left in a run folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('.*') if is_partial(path.name))


def shared_files(before, folder=SHARED):
    """Files of /dev/shm (of a host's: `folder`) that came since, and that no living process maps."""
    new = set(names(folder)) - before
    if not new:
        return []
    mapped = set()
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            mapped.update(re.findall(r'/dev/shm/(\S+)', pathlib.Path(f'/proc/{pid}/maps').read_text()))
        except OSError:
            continue
    return sorted(new - {name.split('/')[0] for name in mapped})


def shared_kind(name):
    if name.startswith('chexnet-'):
        return "/dev/shm: the program's"
    return "/dev/shm: MPI's" if re.match(r'vader_segment|sm_segment|open_mpi|psm', name) else '/dev/shm: others'


class LeftOvers:
    """What a run that was ended leaves, counted by kind; what was found is removed, so that it counts once."""

    def __init__(self, run, within_s):
        self.run, self.within_s = run, within_s
        self.shared = run.stage.shared
        self.before = set() if os.environ.get(OWN_SHARED_MEMORY) else set(names(SHARED))

    def find(self, since, tidied=True):
        """Kinds, examples, and the seconds until all processes were gone. `since`: time.monotonic() of the kill."""
        found = collections.Counter()
        while time.monotonic() - since < self.within_s and (self.run.processes() or self.files()):
            time.sleep(0.02)
        for process in self.run.processes():
            found[f'process: {process.kind}'] += 1
        while time.monotonic() - since < 60 and self.run.processes():
            time.sleep(0.05)
        last_s = time.monotonic() - since
        if self.run.processes():
            found['process: never ended'] += 1
            self.run.end()
        examples = self.files()
        for path in self.shared_paths():
            found[shared_kind(path.name)] += 1
            path.unlink(missing_ok=True)
        for name in names(self.run.tmp):
            found["TMPDIR: MPI's" if name.startswith(('ompi.', 'prte.', 'pmix')) else 'TMPDIR: others'] += 1
        shutil.rmtree(self.run.tmp, ignore_errors=True)
        self.run.tmp.mkdir()
        if not tidied:
            for kind in [kind for kind in found if kind.endswith("MPI's")]:
                del found[kind]
        return found, examples, last_s

    def shared_paths(self):
        return [folder / name for folder in self.shared for name in shared_files(self.before, folder)]

    def files(self):
        return [str(path) for path in self.shared_paths()] + [str(self.run.tmp / name) for name in names(self.run.tmp)]


class Stage:
    """Folder, data set, config, and undisturbed runs by number of ranks."""

    def __init__(self, name, settings=()):
        """`settings` of all runs: KEY=VALUE over the config."""
        self.settings = settings
        self.before, self.arguments = [], []  # words before the program, and after its own, of all runs
        self.shared = [SHARED]  # of all hosts
        self.latest = None  # the run that was started last
        # A shell's job in the background ignores INT, and one of nohup HUP, and what it starts would too.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupted)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=name + '-'))
        self.program = PROGRAM
        if not self.program.exists():
            sys.exit(f'error: {self.program} is not there. Hint: scripts/build release, or CHEXNET_BUILD')
        self.config = self.folder / 'small.yaml'
        self.config.write_text(CONFIG.format(set=self.folder / 'set'))
        self.marks = 0
        self.wholes = {}
        drawing = [str(self.program), 'phantom', str(self.folder / 'set'), '--images', '96', '--size', '64']
        subprocess.run(drawing, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def next_mark(self):
        self.marks += 1
        return self.marks

    def whole(self, ranks):
        """The undisturbed run, trained when it is first needed."""
        if ranks not in self.wholes:
            self.wholes[ranks] = whole = self.train_whole(ranks)
            print(f'undisturbed run, ranks: {ranks}: {whole.length_s:.1f} s, first step after {whole.start_s:.1f} s',
                  flush=True)
        return self.wholes[ranks]

    def train_whole(self, ranks):
        folder = self.folder / f'whole-{ranks}'
        folder.mkdir()
        run = Run(self, folder / 'run', 'alone' if ranks == 1 else 'parent', ranks)
        run.wait_until(lambda: '"event":"train"' in read_text(run.folder / 'metrics.jsonl'), 600)
        start_s = run.age()
        code = run.wait(600)
        if code != 0:
            sys.exit(f'error: the undisturbed run ended with {code}; its output is {folder}/log')
        steps = {kind: [line['step'] for line in metrics(run.folder) if line['event'] == kind] for kind in ('val', 'train')}
        return Whole(run.folder, run.age(), start_s, steps['val'], max(steps['train']))

    def trial_folder(self, number):
        folder = self.folder / f'trial-{number:05d}'
        folder.mkdir()
        return folder

    def resume_to_end(self, folder, how, ranks):
        """An empty text, or why the run could not be continued to the end of the undisturbed one."""
        whole = self.whole(ranks)
        run = Run(self, folder, how, ranks, resume=True)
        left_overs = LeftOvers(run, 30)
        code = run.wait(60 + 20 * whole.length_s)
        if code is None:
            return 'hang'
        if code != 0:
            return f'resume ended with {code}'
        found, examples, _ = left_overs.find(time.monotonic())
        if found:
            return f'its regular end left {dict(found)} {examples[:3]}'
        # With all steps done there is no start to look at.
        return (run.went_on() if run.goes_on_from < whole.steps else '') or whole.difference(folder)

    def close(self, keep):
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def interrupted(self, number, _):
        """Ends the run under way; folders of trials that failed stay."""
        if self.latest is not None:
            self.latest.end()
            shutil.rmtree(self.latest.folder.parent, ignore_errors=True)
        self.close(keep=list(self.folder.glob('trial-*')))
        sys.exit(128 + number)


def read_text(path):
    try:
        return path.read_text()
    except OSError:
        return ''


def metrics(folder):
    """Whole lines only: the last one may be under way."""
    text = read_text(folder / 'metrics.jsonl')
    return [json.loads(line) for line in text[:text.rfind('\n') + 1].splitlines()]


def scores(folder):
    """Of each validation and each scored split, by step and split."""
    return {(line['event'], line['step'], line.get('split')): (line['loss'], line['auroc'])
            for line in metrics(folder) if line['event'] in ('val', 'final')}


def safetensors(path):
    """The descriptions of a file's tensors by name, and the bytes after its header."""
    data = path.read_bytes()
    length = struct.unpack('<Q', data[:8])[0]
    tensors = json.loads(data[8:8 + length])
    tensors.pop('__metadata__', None)
    return tensors, data[8 + length:]


@dataclasses.dataclass
class Whole:
    folder: pathlib.Path
    length_s: float
    start_s: float  # until the first step's line
    evaluated: list  # steps
    steps: int

    def ended_after(self, seconds, of_s):
        """A run, thought to take `of_s`, may have been faster: then moments are drawn from shorter times."""
        shorter = min(1, (1 + seconds / of_s) / 2)
        self.length_s *= shorter
        self.start_s *= shorter

    def difference(self, folder):
        for name in ('last/model', 'last/optimizer', 'best/model'):
            file = f'checkpoints/{name}.safetensors'
            try:
                if (folder / file).read_bytes() != (self.folder / file).read_bytes():
                    return f'{file} differs'
            except OSError as error:
                return str(error)
        steps = [[(line['step'], line['loss']) for line in metrics(run) if line['event'] == 'train']
                 for run in (folder, self.folder)]
        if steps[0] != steps[1]:
            return 'the steps of metrics.jsonl differ'
        if scores(folder) != scores(self.folder):
            return 'the scores of metrics.jsonl differ'
        left = partial_files(folder)
        return f'the run folder keeps {left[0]}' if left else ''


def options(about, **defaults):
    """Of the command line: an option for each default, of its type; lists have commas. Of two defaults the second is that
    of a long run."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        default = default[LONG] if isinstance(default, tuple) else default
        kind = {'type': int if default is None else type(default)}
        if isinstance(default, bool):
            kind = {'action': argparse.BooleanOptionalAction}
        elif isinstance(default, list):
            kind = {'type': lambda text, of=type(default[0]): [of(part) for part in text.split(',')]}
        parser.add_argument('--' + name.replace('_', '-'), default=default, help=f'default: {default}', **kind)
    return parser.parse_args()


def trial_options(about, trials, seconds, ranks, within, seed=1, **more):
    """`trials` are begun for so many seconds, at least one; a run must end `within` seconds (a busy machine needs more);
    `seed` draws all trials, and --only N repeats the trial of this number alone."""
    return options(about, trials=trials, seconds=seconds, ranks=ranks, within=within, seed=seed, only=None, **more)


def skip_unless_long():
    if not LONG:
        print('skipped: it takes long or a quiet machine (CHEXNET_LONG=1)')
        sys.exit(SKIPPED)


class Tally:
    """Counts, left-overs and values (seconds, steps, …) by what they are of; one line of them every few seconds."""

    def __init__(self, options, name, needed='trials'):
        """`needed`: of what at least one must have happened."""
        self.options, self.name, self.needed = options, name, needed
        self.began = self.told = time.monotonic()
        self.counts = collections.Counter()
        self.left = collections.Counter()
        self.values = collections.defaultdict(list)
        self.problems = 0

    def numbers(self):
        """Of the trials to do, within the time; the first in any case, however slow the machine, and some more until one
        has come to what is needed."""
        if self.options.only is not None:
            yield self.options.only
            return
        for number in range(1, 3 * self.options.trials + 1):
            late = number > 1 and time.monotonic() - self.began > self.options.seconds
            if (late or number > self.options.trials) and self.counts[self.needed] > 0:
                return
            yield number

    def dice(self, number):
        return random.Random(f'{self.name}/{self.options.seed}/{number}')

    def problem(self, number, text, folder):
        self.problems += 1
        print(f'FAILED: trial {number} of seed {self.options.seed}: {text}; kept: {folder}', flush=True)

    def progress(self):
        if time.monotonic() - self.told > 5:
            self.told = time.monotonic()
            print(f'{self.told - self.began:6.0f} s  {self.line()}', flush=True)

    def line(self):
        left = ', '.join(f'{kind} {count}' for kind, count in sorted(self.left.items())) or 'nothing'
        return ', '.join(f'{name} {count}' for name, count in self.counts.items()) + f'; left behind: {left}'

    def finish(self, more):
        """Prints the figures; the exit code."""
        print(f'{self.name}: {self.line()}; {json.dumps(more)}', flush=True)
        if self.counts[self.needed] == 0:
            print(f'FAILED: {self.name}: no {self.needed}, so nothing was shown', flush=True)
        return 1 if self.problems or self.counts[self.needed] == 0 else 0


def middle_and_most(values):
    if not values:
        return {'median_s': None, 'most_s': None}
    return {'median_s': round(sorted(values)[len(values) // 2], 2), 'most_s': round(max(values), 2)}
