"""Runs of chexnet-train from Python: Run and runs() as tables of pandas, Predictor for images that are in memory, and
`python -m chexnet_train.sync` for MLflow. In a wheel also the program's start. docs/python.md tells more."""
import importlib
import importlib.util
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STARTER = os.path.join(HERE, 'run')
_PLACES = {'Run': 'run_folder', 'runs': 'run_folder', 'Predictor': 'predictor'}


def __getattr__(name):
    # So that the program starts without pandas.
    if name not in _PLACES:
        raise AttributeError(f'chexnet_train has no {name}')
    return getattr(importlib.import_module('.' + _PLACES[name], __name__), name)


def _in_wheel():
    """The words that start this wheel's program, with the LibTorch of the torch package, which is found and never imported."""
    torch = importlib.util.find_spec('torch')
    if torch is None or not torch.submodule_search_locations:
        with open(os.path.join(HERE, 'TORCH_VERSION'), encoding='ascii') as version:
            sys.exit(f'chexnet-train: {sys.prefix} has no torch. Hint: pip install torch=={version.read().strip()}')
    return [STARTER, '--torch', torch.submodule_search_locations[0]]


def program():
    """The words that start the program: of CHEXNET_PROGRAM, of this wheel, or of PATH."""
    if os.environ.get('CHEXNET_PROGRAM'):
        return [os.environ['CHEXNET_PROGRAM']]
    if os.path.exists(STARTER):
        return _in_wheel()
    if shutil.which('chexnet-train'):
        return ['chexnet-train']
    raise FileNotFoundError('chexnet-train is not in PATH. Hint: CHEXNET_PROGRAM names the program')


def main():
    words = _in_wheel()
    os.execv(words[0], [*words, *sys.argv[1:]])
