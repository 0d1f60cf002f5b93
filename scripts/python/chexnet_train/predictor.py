"""Scores of images that are in memory: by the program, which reads names and answers in JSON lines."""
import json
import pathlib
import struct
import subprocess
import tempfile
import zlib

import numpy as np
import pandas as pd

from . import program


def _png(pixels):
    """A gray PNG of 8 or 16 bits."""
    if pixels.ndim != 2 or pixels.size == 0 or pixels.dtype.kind != 'u' or pixels.dtype.itemsize > 2:
        raise TypeError(f'an image is an array [height, width] of uint8 or uint16 in gray, and this one has {pixels.dtype} {pixels.shape}')
    height, width = pixels.shape
    rows = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder('>')).view(np.uint8).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # each begins with the filter it is written with: none

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    head = struct.pack('>IIBBBBB', width, height, 8 * pixels.dtype.itemsize, 0, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(lines.tobytes(), 1)) + chunk(b'IEND', b'')


class Predictor:
    """Of a run, a checkpoint or a model's .safetensors file; `options` are words for `chexnet-train predict`, as '--rule', 'youden'.

    Each call starts the program once, so hand it many images at a time."""

    def __init__(self, model, *options):
        self.model, self.options = str(model), [str(option) for option in options]

    def __call__(self, images):
        """A row for each image, in order: `prob:FINDING`; with the model's thresholds `calibrated:` and `positive:`; of an
        ensemble `spread:`; `error`, `note`. An image is an array [height, width] of uint8 or uint16, whose
        white is 255 or 65535 (12 bits: shift them by 4), or a file's name."""
        return pd.DataFrame([self._row(line) for line in self._lines(images)])

    def features(self, images):
        """What the network's classifier works on, as float32 [images, features]; NaN for an image that could not be read."""
        lines = self._lines(images, '--features')
        count = max((len(line.get('features', ())) for line in lines), default=0)
        return np.array([line.get('features', [np.nan] * count) for line in lines], np.float32).reshape(len(lines), count)

    def _lines(self, images, *more):
        """What the program says of each image."""
        if isinstance(images, (str, pathlib.Path)):
            images = [images]
        if isinstance(images, np.ndarray) and images.ndim == 3 and images.shape[-1] in (3, 4):
            raise TypeError(f'{images.shape} looks like one picture in color: give gray images, [height, width] each')
        with tempfile.TemporaryDirectory() as scratch:
            names = []
            for number, image in enumerate(images):
                if isinstance(image, (str, pathlib.Path)):
                    names.append(str(pathlib.Path(image).absolute()))
                    continue
                names.append(f'{scratch}/{number}.png')
                pathlib.Path(names[-1]).write_bytes(_png(np.asarray(image)))
            if len(set(names)) < len(names):
                raise ValueError('a file is named twice')
            if not names:
                return []
            command = [*program(), 'predict', self.model, '-', '--json', *self.options, *more]
            done = subprocess.run(command, input=''.join(name + '\0' for name in names), text=True, capture_output=True)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            if len(lines) != len(names) + 1:  # the last one sums up
                raise RuntimeError(f'{" ".join(command)} ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}')
            by_name = {line['image']: line for line in lines[:-1]}
            return [by_name[name] for name in names]

    @staticmethod
    def _row(line):
        row = {f'prob:{finding}': value for finding, value in line.get('probabilities', {}).items()}
        for kind in ('calibrated', 'positive', 'spread'):
            row.update({f'{kind}:{finding}': value for finding, value in line.get(kind, {}).items()})
        return {**row, 'error': line.get('error', ''), 'note': line.get('note', '')}
