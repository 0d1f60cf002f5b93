"""Copies a run's settings, metrics and figures to MLflow: from where there is a network, during the run or after it.

Say it again to add what is new: a run is found by its own mark. No image, patient or prediction leaves unless --include
names its file."""
import argparse
import hashlib
import math
import os
import re

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from .run_folder import Run

ARTIFACTS = ('config.yaml', 'model_card.md', 'results.json')
MOST_METRICS, MOST_PARAMS = 1000, 100  # of MLflow's log_batch
LONGEST_PARAM = 6000
STATES = {'finished': 'FINISHED', 'ensemble': 'FINISHED', 'failed': 'FAILED', 'aborted': 'FAILED', 'died': 'FAILED'}


def mark_of(run):
    """Of this run wherever its folder lies: of the names and words that its start wrote."""
    first = (run.folder / 'metrics.jsonl').open('rb').readline() if (run.folder / 'metrics.jsonl').exists() else b''
    begun = min((path.name for path in run.folder.glob('events.out.tfevents.*')), default='')
    return hashlib.sha256(first + begun.encode() + (run.folder / 'config.yaml').read_bytes() * (not first)).hexdigest()


def name_of(text):
    """As MLflow allows it."""
    return re.sub(r'[^\w\-. /]', '_', text)


def numbers_of(line, prefix):
    for key, value in line.items():
        if isinstance(value, dict):
            yield from numbers_of(value, f'{prefix}/{key}')
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and key != 'step' and math.isfinite(value):
            yield name_of(f'{prefix}/{key}'), float(value)


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
            if name_of(key) not in known:
                new.append(Param(name_of(key), text))
            elif known[name_of(key)] != text:
                changed['changed.' + name_of(key)] = text
        for begin in range(0, len(new), MOST_PARAMS):
            self.client.log_batch(self.id, params=new[begin:begin + MOST_PARAMS])
        if changed:
            self.tag(**changed)
        return len(new)

    def metrics(self):
        """From the first line that is not there yet. A resume cuts off lines that were there: then all are sent again."""
        lines = self.run.lines()

        def sum_of(count):
            return f'{count} {hashlib.sha256(repr(lines[:count]).encode()).hexdigest()}'
        known = self.to.data.tags.get('chexnet.lines', '0 ')
        done = int(known.split()[0])
        if done > len(lines) or (done and known != sum_of(done)):
            done = 0
        sent = 0
        metrics = []
        for number in range(done, len(lines)):
            metrics += metrics_of(lines[number:number + 1], self.begun_ms)
            if number + 1 < len(lines) and len(metrics) < MOST_METRICS // 2:
                continue
            for begin in range(0, len(metrics), MOST_METRICS):
                self.client.log_batch(self.id, metrics=metrics[begin:begin + MOST_METRICS])
            self.tag(lines=sum_of(number + 1))
            sent, metrics = sent + len(metrics), []
        return sent

    def figures(self):
        results = self.run.results
        metrics = []
        for split, evaluation in results['evaluations'].items():
            for key in ('mean_auroc', 'any_finding_auroc_mean_logit'):
                if evaluation.get(key) is not None:
                    metrics.append((f'{split}/{key}', evaluation[key]))
            if evaluation.get('mean_auroc_interval'):
                metrics += zip((f'{split}/mean_auroc_low', f'{split}/mean_auroc_high'), evaluation['mean_auroc_interval'])
            for finding, figures in self.run.figures(split).iterrows():
                metrics += [(f'{split}/{key}/{finding}', figures[key]) for key in ('auroc', 'average_precision', 'brier')
                            if figures[key] is not None and math.isfinite(figures[key])]
        step = results['model'].get('scored_step', 0)
        metrics = [Metric(name_of(key), float(value), self.begun_ms + step, step) for key, value in metrics]
        for begin in range(0, len(metrics), MOST_METRICS):
            self.client.log_batch(self.id, metrics=metrics[begin:begin + MOST_METRICS])
        self.tag(version=results['version'], command=results['command'], table_sha256=results['data']['sha256'],
                 **{f'split_sha256.{name}': split['sha256'] for name, split in results['data']['splits'].items()})

    def files(self, include):
        for name in (*ARTIFACTS, *include):
            if (self.run.folder / name).exists():
                self.client.log_artifact(self.id, str(self.run.folder / name))
        best = self.run.folder / 'checkpoints/best/model.safetensors'
        model = best if best.exists() else self.run.folder / 'model.safetensors'
        if model.exists():
            self.tag(model_sha256=sha256_of(model))

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
        for name in options.include:
            if not (run.folder / name).exists():
                parser.error(f'--include {name}: {options.run} has no such file')
        sync = Sync(run, MlflowClient(options.mlflow), options.experiment)
        params, metrics, state = sync.params(), sync.metrics(), run.status['state']
        if (run.folder / 'results.json').exists():
            sync.figures()
        sync.files(options.include)
        sync.end(state)
    except (OSError, MlflowException) as error:
        parser.exit(1, f'sync: {error}\nHint: say it again when the cause is gone: what is there already is not sent twice\n')
    print(f'{options.run} ({state}): {params} params, {metrics} metrics to {options.mlflow}, experiment {options.experiment}, run {sync.id}')


if __name__ == '__main__':
    main()
