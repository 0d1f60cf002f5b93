"""What python_test.sh looks at.
usage: python_checks.py FUNCTION ARGUMENTS..."""
import csv
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from PIL import Image
from chexnet_train import Predictor, Run, runs


def tables(folder, images):
    table = runs(folder)
    assert len(table) == 2 and set(table.state) == {'finished'} and sorted(table.total_steps) == [3, 6], table
    run = Run(f'{folder}/one')
    assert run.config['train.max_steps'] == 6 and Run(f'{folder}/two').config['train.lr'] == 0.002
    assert list(run.metrics().step) == [1, 2, 3, 4, 5, 6] and run.metrics().loss.gt(0).all()
    assert {'mean_auroc', 'loss'} <= set(run.metrics('val').columns)
    results = json.load(open(f'{folder}/one/results.json'))
    figures = run.figures('test')
    for finding, row in figures.iterrows():
        want = results['evaluations']['test']['findings'][finding]
        assert row.positives == want['positives'] and (row.auroc == want['auroc'] or pd.isna(row.auroc) and want['auroc'] is None)
    with open(f'{folder}/one/predictions_test.csv') as file:
        rows = list(csv.DictReader(file))
    scores = run.predictions('test')
    assert list(scores.index) == [row['image'] for row in rows]
    assert all(scores[name].astype(float).tolist() == [float(row[name]) for row in rows] for name in rows[0] if name.startswith('prob:'))
    assert set(run.split().split) == {'train', 'val', 'test'}
    for wrong, what in ((lambda: Run(images), FileNotFoundError), (lambda: run.predictions('train'), FileNotFoundError), (lambda: run.figures('train'), KeyError)):
        try:
            wrong()
            raise AssertionError('was not refused')
        except what:
            pass

    files = sorted(pathlib.Path(images).glob('*.png'))[:5]
    arrays = [np.asarray(Image.open(file).convert('L')) for file in files]
    predict = Predictor(run.folder, '--ranks', 1)
    by_file, by_array = predict(files), predict(arrays)
    assert len(by_file) == 5 and by_file.filter(like='prob:').equals(by_array.filter(like='prob:')), (by_file, by_array)
    assert by_file.filter(like='positive:').shape[1] == 14
    wide = predict([arrays[0].astype(np.uint16) * 257, arrays[0][:, ::-1]])  # 16 bits, and no array in order
    assert wide.filter(like='prob:').iloc[0].equals(by_file.filter(like='prob:').iloc[0])
    assert not wide.filter(like='prob:').iloc[1].equals(by_file.filter(like='prob:').iloc[0])
    broken = predict([files[0], '/nowhere.png'])
    assert broken.error[0] == '' and broken.error[1] and pd.isna(broken.filter(like='prob:').iloc[1]).all(), broken
    for wrong, what in (([arrays[0] / 255], TypeError), ([np.zeros((3, 4, 5), np.uint8)], TypeError), (np.zeros((40, 50, 3), np.uint8), TypeError), ([files[0], files[0]], ValueError)):
        try:
            predict(wrong)
            raise AssertionError('was not refused')
        except what:
            pass
    assert predict([]).empty
    features = predict.features([*arrays, '/nowhere.png'])
    assert features.dtype == np.float32 and features.shape == (6, 1024) and np.isnan(features[5]).all(), features
    assert (features[:5] >= 0).all() and (features[:5].std(axis=0) > 0).any() and (features[:5] == predict.features(files)).all()


def there(run):
    """What the server has of it: params, {(metric, step): values}, tags."""
    from mlflow.tracking import MlflowClient
    from chexnet_train.sync import mark_of
    client = MlflowClient()
    experiment = client.get_experiment_by_name('chexnet-train')
    found = client.search_runs([experiment.experiment_id], f"tags.`chexnet.run` = '{mark_of(run)}'")
    assert len(found) == 1, found
    history = {}
    for key in found[0].data.metrics:
        for metric in client.get_metric_history(found[0].info.run_id, key):
            history.setdefault((key, metric.step), []).append(metric.value)
    return found[0], history, [artifact.path for artifact in client.list_artifacts(found[0].info.run_id)]


def names():
    """Findings that MLflow takes by other names stay apart."""
    from chexnet_train.sync import name_of
    texts = ['a/b', 'a_2f_b', 'a_5f_2f_b', '_2f/', '/2f_', '2f_', '_2f_', 'Pleural_Thickening', 'long' * 30, 'long' * 31]
    assert len({name_of(text) for text in texts}) == len(texts) and name_of('Pleural_Thickening') == 'Pleural_Thickening'


def synced(folder, said):
    run = Run(folder)
    got, history, artifacts = there(run)
    assert got.info.run_id in open(said).read()
    assert got.data.params['train.max_steps'] in ('4', '6') and len(got.data.params) == len(run.config)
    if run.config['train.max_steps'] == 8:  # the first value stays
        assert got.data.tags['chexnet.changed.train.max_steps'] == '8', got.data.tags
    lines = [line for line in run.lines() if line['event'] == 'train']
    for line in lines:
        for key in ('loss', 'lr', 'images_per_s'):
            assert set(history[f'train/{key}', line['step']]) == {line[key]}, (line, key)
    assert {step for key, step in history if key == 'train/loss'} == {line['step'] for line in lines}
    evaluation = run.results['evaluations']['test']
    assert got.data.metrics.get('final/test/mean_auroc') == evaluation['mean_auroc']
    assert sum(key.startswith('final/test/auroc/') for key in got.data.metrics) == sum(f['auroc'] is not None for f in evaluation['findings'].values())
    assert got.info.status == 'FINISHED' and {'config.yaml', 'model_card.md', 'results.json'} <= set(artifacts), artifacts
    sums = subprocess.run(['sha256sum', run.folder / 'checkpoints/best/model.safetensors'], capture_output=True, text=True, check=True).stdout
    assert got.data.tags['chexnet.model_sha256'] == sums.split()[0]


def alone(folder):
    """One run has this one's mark, and its name."""
    from chexnet_train.sync import mark_of
    from mlflow.tracking import MlflowClient
    client = MlflowClient()
    experiment = client.get_experiment_by_name('chexnet-train').experiment_id
    found = client.search_runs([experiment], f"tags.`chexnet.run` = '{mark_of(Run(folder))}'")
    assert len(found) == 1 and found[0].info.status == 'FINISHED', found
    final = {key: value for key, value in found[0].data.metrics.items() if key.startswith('final/test/mean_auroc')}
    results = json.load(open(f'{folder}/results.json'))
    assert final['final/test/mean_auroc'] == results['evaluations']['test']['mean_auroc'], final


def killed(folder):
    """Ends a sync once the server has some of its metrics."""
    process = subprocess.Popen([sys.executable, '-m', 'chexnet_train.sync', folder], stdout=subprocess.DEVNULL)
    for _ in range(600):
        time.sleep(0.02)
        try:
            if there(Run(folder))[1]:
                break
        except AssertionError:
            continue
    assert process.poll() is None, 'it was over before'
    process.kill()
    process.wait()


globals()[sys.argv.pop(1)](*sys.argv[1:])
