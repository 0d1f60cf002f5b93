"""Copies a run's settings, metrics and figures to MLflow: from where there is a network, during the run or after it.

Say it again to add what is new: a run is found by its own mark. No image, patient or prediction leaves unless --include
names its file."""
import argparse
import contextlib
import fcntl
import hashlib
import math
import os
import re

import yaml
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from .run_folder import Run

ARTIFACTS = ('config.yaml', 'model_card.md', 'results.json')
MOST_METRICS, MOST_PARAMS = 1000, 100  # of MLflow's log_batch
LONGEST_PARAM = 6000
STATES = {'finished': 'FINISHED', 'ensemble': 'FINISHED', 'failed': 'FAILED', 'aborted': 'FAILED', 'died': 'FAILED'}


def mark_of(run):
    """Of this run wherever its folder lies: of what its start wrote; of an ensemble, which was not trained, its results."""
    metrics = run.folder / 'metrics.jsonl'
    if not metrics.exists():
        return sha256_of(run.folder / 'results.json')
    with metrics.open('rb') as file:
        first = file.readline()
    if not first.endswith(b'\n'):
        raise FileNotFoundError(f'{run.folder}: has not begun. Hint: sync it once it trains')
    begun = min((path.name for path in run.folder.glob('events.out.tfevents.*')), default='')
    return hashlib.sha256(first + begun.encode()).hexdigest()


def name_of(text):
    """As MLflow allows it; what is not allowed, and a slash, by its number, so that no two become one. So is an underscore that
    seems to begin such a number."""
    text = re.sub(r'[^\w\-. ]|_(?=[0-9a-f]+([^\w\-. ]|_))', lambda sign: f'_{ord(sign[0]):x}_', text)
    return text if len(text) <= 100 else text[:60] + hashlib.sha256(text.encode()).hexdigest()[:16]


def numbers_of(line, prefix):
    for key, value in line.items():
        if isinstance(value, dict):
            yield from numbers_of(value, f'{prefix}/{name_of(key)}')
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and key != 'step' and math.isfinite(value):
            yield f'{prefix}/{name_of(key)}', float(value)


def metrics_of(lines, begun_ms):
    """Every number of the lines that have a step; final scores come from results.json. Lines have no time, and MLflow asks for
    one: it only keeps their order."""
    return [Metric(key, value, begun_ms + line['step'], line['step'])
            for line in lines if 'step' in line and line['event'] not in ('start', 'final')
            for key, value in numbers_of(line, line['event'])]


def sha256_of(path):
    total = hashlib.sha256()
    with path.open('rb') as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


class Sync:
    def __init__(self, run, client, experiment):
        self.run, self.client = run, client
        found = client.get_experiment_by_name(experiment)
        experiment_id = found.experiment_id if found else client.create_experiment(experiment)
        mark = mark_of(run)
        there = client.search_runs([experiment_id], f"tags.`chexnet.run` = '{mark}'", max_results=1)
        self.begun_ms = int((run.folder / 'config.yaml').stat().st_mtime * 1000)
        self.to = there[0] if there else client.create_run(experiment_id, start_time=self.begun_ms, run_name=run.folder.resolve().name,
                                                           tags={'chexnet.run': mark})
        self.id = self.to.info.run_id

    def tag(self, **tags):
        self.client.log_batch(self.id, tags=[RunTag('chexnet.' + key, str(value)) for key, value in tags.items()])

    def params(self):
        """Those of the first sync stay, as MLflow wants it; what a resumed run changed is a tag."""
        known, new, changed = self.to.data.params, [], {}
        for key, value in self.run.config.items():
            text = str(value)[:LONGEST_PARAM]
            if key not in known:
                new.append(Param(key, text))
            elif known[key] != text:
                changed['changed.' + key] = text
        for begin in range(0, len(new), MOST_PARAMS):
            self.client.log_batch(self.id, params=new[begin:begin + MOST_PARAMS])
        if changed:
            self.tag(**changed)
        return len(new)

    def metrics(self):
        """From the first line that is not there yet. A resume cuts off lines that were there: then all are sent again."""
        lines = self.run.lines()
        sums, total = ['0 '], hashlib.sha256()  # [lines]
        for line in lines:
            total.update(repr(line).encode())
            sums.append(f'{len(sums)} {total.hexdigest()}')
        known = self.to.data.tags.get('chexnet.lines', sums[0])
        done = int(known.split()[0])
        if done > len(lines) or known != sums[done]:
            done = 0
        sent = 0
        metrics = []
        for number in range(done, len(lines)):
            metrics += metrics_of(lines[number:number + 1], self.begun_ms)
            if number + 1 < len(lines) and len(metrics) < MOST_METRICS // 2:
                continue
            for begin in range(0, len(metrics), MOST_METRICS):
                self.client.log_batch(self.id, metrics=metrics[begin:begin + MOST_METRICS])
            self.tag(lines=sums[number + 1])
            sent, metrics = sent + len(metrics), []
        return sent

    def figures(self):
        results = self.run.results
        metrics = []
        for split, evaluation in results['evaluations'].items():
            for key in ('mean_auroc', 'any_finding_auroc_mean_logit'):
                metrics.append((f'final/{split}/{key}', evaluation.get(key)))
            metrics += zip((f'final/{split}/mean_auroc_low', f'final/{split}/mean_auroc_high'), evaluation.get('mean_auroc_interval') or ())
            for finding, figures in self.run.figures(split).iterrows():
                metrics += [(f'final/{split}/{key}/{name_of(finding)}', value) for key, value in figures.items() if key != 'few_positives']
        step = results['model'].get('scored_step', 0)
        metrics = [Metric(key, float(value), self.begun_ms + step, step) for key, value in metrics if value is not None and math.isfinite(value)]
        for begin in range(0, len(metrics), MOST_METRICS):
            self.client.log_batch(self.id, metrics=metrics[begin:begin + MOST_METRICS])
        self.tag(version=results['version'], command=results['command'], table_sha256=results['data']['sha256'],
                 **{f'split_sha256.{name}': split['sha256'] for name, split in results['data']['splits'].items()})

    def files(self, include):
        sent = [name for name in (*ARTIFACTS, *include) if (self.run.folder / name).exists()]
        for name in sent:
            self.client.log_artifact(self.id, str(self.run.folder / name))
        best = self.run.folder / 'checkpoints/best/model.safetensors'
        model = best if best.exists() else self.run.folder / 'model.safetensors'
        if model.exists():
            self.tag(model_sha256=sha256_of(model))
        return sent

    def end(self, state):
        if state in STATES:
            self.client.set_terminated(self.id, STATES[state])
        else:
            self.client.update_run(self.id, 'RUNNING')


def main():
    parser = argparse.ArgumentParser(prog='python -m chexnet_train.sync', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('run', help='run folder')
    parser.add_argument('--mlflow', default=os.environ.get('MLFLOW_TRACKING_URI'), metavar='URL', help='tracking server (default: MLFLOW_TRACKING_URI)')
    parser.add_argument('--experiment', default='chexnet-train')
    parser.add_argument('--include', nargs='*', default=[], metavar='FILE', help='also these of the run folder, as report.html or predictions_test.csv')
    options = parser.parse_args()
    if not options.mlflow:
        parser.error('--mlflow URL, or MLFLOW_TRACKING_URI')
    os.environ.setdefault('MLFLOW_HTTP_REQUEST_MAX_RETRIES', '3')  # of seven, the last comes after minutes
    try:
        run = Run(options.run)
        alone = (run.folder / 'config.yaml').open()  # until the end: of two syncs at once both would begin a run
        with contextlib.suppress(OSError):  # of file systems without locks
            fcntl.flock(alone, fcntl.LOCK_EX)
        for name in options.include:
            if not (run.folder / name).exists():
                parser.error(f'--include {name}: {options.run} has no such file')
        state = run.status['state']
        sync = Sync(run, MlflowClient(options.mlflow), options.experiment)
        params, metrics = sync.params(), sync.metrics()
        if (run.folder / 'results.json').exists():
            sync.figures()
        files = sync.files(options.include)
        sync.end(state)
    except MlflowException as error:
        parser.exit(1, f'sync: {error}\nHint: say it again when the cause is gone: what is there already is not sent twice\n')
    except OSError as error:
        parser.exit(1, f'sync: {error}\n')
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, yaml.YAMLError) as error:
        parser.exit(1, f'sync: {options.run}: a file of it is not what a run writes: {type(error).__name__}: {error}\n'
                       'Hint: copy the run again from where it was made\n')
    print(f'{options.run} ({state}): {params} params, {metrics} metrics, {", ".join(files)} to {options.mlflow}, experiment {options.experiment}, run {sync.id}')


if __name__ == '__main__':
    main()
