"""What crash_points_test.py runs: for each writer a command, what is there before it, and what must be there
after a crash and after the command was started again."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import harness

TEMPORARY = re.compile(r'\.partial$|\.tmp$|\.next$|/\.step-|\.part$|\.sums$')
ORIGINAL = """data:
  manifest: {{path: {set}/Data_Entry_2017.csv}}
  images: [{images}]
  train_list: {set}/train_val_list.txt
  test_list: {set}/test_list.txt
  resize: 36
  crop: 32
model: {{arch: densenet121, weights: none}}
train: {{batch: 8, max_steps: {steps}, epochs: 100}}
checkpoint: {{every_steps: 1, keep: {keep}}}
run: {{log_every: 1}}
eval: {{batch: 8, splits: []}}
launch: {{device: cpu, threads: 1}}
"""


def sum_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def target_of(link):
    return os.readlink(link) if os.path.islink(link) else 'none'


class Job:
    """`folder` is what crashes; `base` holds configs and what is not touched."""
    keep = 1
    partial_stays = ()  # what a crash may leave and the next start takes up
    error_code = 4

    def __init__(self, base, images):
        self.base = pathlib.Path(base)
        self.folder, self.set = self.base / 'work', self.base / 'set'
        self.base.mkdir(parents=True)
        self.folder.mkdir()
        self.call('phantom', self.set, '--images', str(images), '--size', '64')
        self.prepare()

    def call(self, *arguments, check=True, environment=None, timeout=120):
        command = [str(harness.PROGRAM), *map(str, arguments)]
        environment = {**os.environ, 'LC_ALL': 'C', 'XDG_CACHE_HOME': str(self.base / 'cache'), **(environment or {})}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                              timeout=timeout, errors='replace')
        if check and done.returncode != 0:
            raise RuntimeError(f'{" ".join(command)} ended with {done.returncode}\n{done.stderr[-2000:]}')
        return done

    def config(self, name, images=None, steps=2):
        path = self.base / f'{name}.yaml'
        path.write_text(ORIGINAL.format(set=self.set, images=images or f'{self.set}/images', steps=steps,
                                        keep=self.keep))
        return path

    def start(self, **options):
        return self.call(*self.command(), check=False, **options)

    def prepare(self):
        pass

    def look(self):
        """What is taken for whole now, before anything was started again: problems."""
        return []

    def compare(self, clean):
        """The end, against the folder of a run that nothing disturbed: problems."""
        return []

    def temporary(self):
        names = [f'{at}/{name}' for at, folders, files in os.walk(self.folder) for name in folders + files]
        return sorted(name for name in names if TEMPORARY.search(name))

    def allowed(self, name):
        return any(re.search(pattern, name) for pattern in self.partial_stays)


def broken_step(step):
    """What a checkpoint lacks of what its state.json says; empty when whole."""
    try:
        files = json.loads((step / 'state.json').read_text())['files']
        for name, said in files.items():
            wanted = [said['sha256']] + ([said['next']['sha256']] if 'next' in said else [])
            if sum_of(step / name) not in wanted:
                return f'{step.name}/{name} has another sum'
    except (OSError, ValueError, KeyError) as error:
        return f'{step.name}: {error!r}'
    return ''


class Train(Job):
    """A run that goes on from step 1 to 2 and evaluates: checkpoints, links, metrics.jsonl, tables, reports."""
    name, steps = 'train', 2

    def command(self):
        config = self.base / 'train.yaml'
        return ['train', config, '--out', self.folder / 'run', '--resume', 'auto']

    def prepare(self):
        config = self.config('train', steps=1)
        self.call('train', config, '--out', self.folder / 'run')
        self.config('train', steps=2)

    def look(self):
        folder = self.folder / 'run/checkpoints'
        problems = [broken_step(step) for step in folder.glob('step-*') if '.' not in step.name]
        whole = [step for step in folder.glob('step-*') if '.' not in step.name and not broken_step(step)]
        if not whole:
            problems.append('no whole checkpoint')
        return [problem for problem in problems if problem]

    def weights(self, clean):
        run, problems = self.folder / 'run', []
        for name in ('model', 'optimizer'):
            path = f'checkpoints/last/{name}.safetensors'
            if not (run / path).exists() or sum_of(run / path) != sum_of(clean / 'run' / path):
                problems.append(f'{path} is not that of the run without a crash')
        return problems

    def compare(self, clean):
        run = self.folder / 'run'
        problems = self.weights(clean) + self.lines(run, clean / 'run') + self.look()
        for name in ('results.json', 'report.html', 'model_card.md', 'config.yaml', 'split.csv'):
            if not (run / name).exists():
                problems.append(f'{name} is missing')
        found, wanted = (target_of(at / 'checkpoints/best') for at in (run, clean / 'run'))
        if found != wanted:
            problems.append(f'the best checkpoint is {found}, not {wanted}')
        return problems

    def lines(self, run, clean, kinds=('train', 'val', 'final')):
        def steps(path):
            events = [json.loads(line) for line in path.read_text().splitlines()]
            return [(e['event'], e['step']) for e in events if e['event'] in kinds]
        try:
            found, wanted = steps(run / 'metrics.jsonl'), steps(clean / 'metrics.jsonl')
        except (OSError, ValueError) as error:
            return [f'metrics.jsonl: {error!r}']
        if found != wanted:
            return [f'metrics.jsonl has {found}, not {wanted}']
        return []


class First(Train):
    """The same from the beginning: no folder, no checkpoint."""
    name = 'first'

    def prepare(self):
        self.config('train', steps=1)

    def look(self):
        folder = self.folder / 'run/checkpoints'
        steps = folder.glob('step-*') if folder.exists() else []
        return [p for p in (broken_step(step) for step in steps if '.' not in step.name) if p]


class Pack(Job):
    name = 'pack'
    partial_stays = (r'/\.out\.pack\.partial$',)

    def prepare(self):
        self.config('pack')
        self.out = self.folder / 'out.pack'

    def command(self):
        return ['pack', self.base / 'pack.yaml', '--out', self.out, '--threads', '1']

    def look(self):
        if not self.out.exists():
            return []
        looked = self.call('inspect', self.config('look', images=self.out), check=False)
        return [] if looked.returncode == 0 else [f'the pack is there and not whole: {looked.stderr[-300:]}']

    def compare(self, clean):
        same = self.out.exists() and sum_of(self.out) == sum_of(clean / 'out.pack')
        return [] if same else ['the pack is not that of a job without a crash']


class Records(Job):
    name = 'records'

    def prepare(self):
        self.config('records')
        self.out = self.folder / 'shards'

    def command(self):
        return ['pack', self.base / 'records.yaml', '--out', self.out, '--format', 'tfrecord', '--threads', '1',
                '--per-shard', '7', '--prefix', 'all']

    def shards(self, folder):
        return {path.name: sum_of(path) for path in folder.glob('all-*') if path.suffix != '.index'}

    def look(self):
        wanted = self.shards(self.base / 'clean/shards') if (self.base / 'clean').exists() else {}
        found = self.shards(self.out)
        return [f'{name} is there and not whole' for name in found if wanted and wanted.get(name) != found[name]]

    def compare(self, clean):
        same = self.shards(self.out) == self.shards(clean / 'shards')
        problems = [] if same else ['other shards than without a crash']
        looked = self.call('inspect', self.config('look', images=self.out), check=False)
        if looked.returncode != 0 or 'damaged' in looked.stderr:
            problems.append(f'inspect: {looked.stderr[-300:]}')
        return problems


class Index(Job):
    """The index that is made beside an archive."""
    name = 'index'

    def prepare(self):
        subprocess.run(['tar', 'cf', self.folder / 'one.tar', '-C', self.set, 'images'], check=True)
        self.config('index', images=self.folder / 'one.tar')

    def command(self):
        return ['inspect', self.base / 'index.yaml']

    def compare(self, clean):
        index = self.folder / 'one.tar.index'
        kept = list((self.base / 'cache').glob('chexnet-train/index/*.index'))
        if not index.exists() and not kept:
            return ['there is no index']
        index = index if index.exists() and not kept else kept[0]
        return [] if index.read_text() == (clean / 'one.tar.index').read_text() else ['another index']


class OldIndex(Index):
    """The same where one of an older content is replaced."""
    name = 'old_index'

    def prepare(self):
        super().prepare()
        (self.folder / 'one.tar.index').write_text('chexnet-index 2 tar 1 1\ncrc32c 00000000\n')
        os.chmod(self.folder / 'one.tar.index', 0o600)


class Stage(Job):
    """A pack that is copied to a local disk, while a run starts."""
    name, error_code = 'stage', 3
    partial_stays = (r'\.pack\.part$', r'\.pack\.sums$')

    def prepare(self):
        pack = self.base / 'source.pack'
        self.call('pack', self.config('pack'), '--out', pack)
        self.config('stage', images=pack, steps=1)

    def command(self):
        return ['train', self.base / 'stage.yaml', '--out', self.base / 'run', '--resume', 'auto',
                '--set', f'data.stage={self.folder}']

    def start(self, **options):
        shutil.rmtree(self.base / 'run', ignore_errors=True)
        return super().start(**options)

    def copies(self):
        return list(self.folder.glob('**/source.pack'))

    def look(self):
        source = sum_of(self.base / 'source.pack')
        return [f'{copy} is there and not whole' for copy in self.copies() if sum_of(copy) != source]

    def compare(self, clean):
        return self.look() + ([] if len(self.copies()) == 1 else ['there is no copy'])

    def temporary(self):
        return [name for name in super().temporary() if not name.endswith('.sums')]


JOBS = {job.name: job for job in (Train, First, Pack, Records, Index, OldIndex, Stage)}
