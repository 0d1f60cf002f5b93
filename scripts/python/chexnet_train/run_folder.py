"""What a run folder holds, as tables of pandas. Nothing here writes into it."""
import json
import pathlib
import subprocess

import pandas as pd
import yaml

from . import program


def _flat(value, prefix=''):
    """{'train.lr': 0.001, …} of nested mappings."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat = {}
    for key, part in value.items():
        flat.update(_flat(part, f'{prefix}.{key}' if prefix else str(key)))
    return flat


class Run:
    """One run: a folder that `train` or `ensemble` wrote, finished or not."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not self._file('config.yaml').is_file():
            raise FileNotFoundError(f'{self.folder} is no run folder: it has no config.yaml')

    def __repr__(self):
        return f'Run({str(self.folder)!r})'

    def _file(self, name):
        return self.folder / name

    @property
    def config(self):
        """Every key with its value, as {'train.lr': 0.001, …}."""
        return _flat(yaml.safe_load(self._file('config.yaml').read_text(encoding='utf-8')))

    @property
    def results(self):
        """results.json, which the end of a run writes (docs/json.md)."""
        path = self._file('results.json')
        if not path.exists():
            raise FileNotFoundError(f'{path}: a run writes it at its end. Hint: `chexnet-train status {self.folder}`')
        return json.loads(path.read_text(encoding='utf-8'))

    @property
    def status(self):
        """What `chexnet-train status --json` says of it now."""
        return _status([self.folder])[0]

    def metrics(self, event='train'):
        """The lines of metrics.jsonl of one kind: start, train, val, system, …; a row each, nested fields as `auroc.Mass`."""
        lines = self.lines()
        return pd.json_normalize([line for line in lines if line['event'] == event])

    def lines(self):
        """All of metrics.jsonl. A last line that is just being written is left out."""
        path = self._file('metrics.jsonl')
        text = path.read_text(encoding='utf-8') if path.exists() else ''
        lines = []
        for number, line in enumerate(text.split('\n')[:-1], 1):
            try:
                lines.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f'{path}:{number}: {error}') from None
        return lines

    def predictions(self, split='test'):
        """`label:` and `prob:` of each finding by image; `split` as eval.splits scored it."""
        path = self._file(f'predictions_{split}.csv')
        if not path.exists():
            raise FileNotFoundError(f'{path}: the run has not scored that split. Hint: eval.splits names it, and its end writes it')
        return pd.read_csv(path, dtype={'image': str}).set_index('image')

    def split(self):
        """image, patient and split of every image (split.csv)."""
        return pd.read_csv(self._file('split.csv'), dtype=str)

    def figures(self, split='test'):
        """A row for each finding: labeled images, AUROC and average precision with their 95 % intervals, Brier score."""
        evaluations = self.results['evaluations']
        if split not in evaluations:
            raise KeyError(f'{self.folder}: {split} was not scored, but {", ".join(evaluations) or "nothing"} was')
        rows = {}
        for finding, figures in evaluations[split]['findings'].items():
            row = {key: figures[key] for key in ('positives', 'negatives', 'few_positives')}
            for key in ('auroc', 'average_precision'):
                row[key] = figures[key]
                row[f'{key}_low'], row[f'{key}_high'] = figures[f'{key}_interval'] or (None, None)
            rows[finding] = {**row, 'brier': figures['brier']}
        return pd.DataFrame.from_dict(rows, orient='index').rename_axis('finding')


def _status(folders):
    done = subprocess.run([*program(), 'status', *map(str, folders), '--json'], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f'{program()[0]} status ended with {done.returncode}: {done.stderr.strip()}')
    return json.loads(done.stdout)


def runs(*folders):
    """A row for each run in these folders, as `status --json` has it (docs/json.md); nested fields as `final.test.mean_auroc`."""
    return pd.json_normalize(_status(folders)).set_index('folder')
