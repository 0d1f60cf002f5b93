"""Starts the program of this wheel with the LibTorch of the torch package, which is found and never imported."""
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    torch = importlib.util.find_spec('torch')
    if torch is None or not torch.submodule_search_locations:
        with open(os.path.join(HERE, 'TORCH_VERSION'), encoding='ascii') as version:
            sys.exit(f'chexnet-train: {sys.prefix} has no torch. Hint: pip install torch=={version.read().strip()}')
    run = os.path.join(HERE, 'run')
    os.execv(run, [run, '--torch', torch.submodule_search_locations[0], *sys.argv[1:]])
