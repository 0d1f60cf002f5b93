"""The antialias resize of gray pictures in NumPy, equal to PyTorch's uint8 kernel and to the program's, bit for bit.

pixels = resize(gray, height, width)      gray: uint8 [H, W]; pixels: uint8 [height, width]

For software without PyTorch: Pillow's BILINEAR is the same filter, but rounds some pixels to the next gray level.
"""
import numpy as np


def taps(size, wanted):
    """Weights [wanted, size] as int64 and the bits of their fixed point; as compute_index_ranges_int16_weights of PyTorch."""
    scale = size / wanted
    support = max(1.0, scale)
    center = scale * (np.arange(wanted) + 0.5)
    first = np.maximum((center - support + 0.5).astype(int), 0)
    end = np.minimum((center + support + 0.5).astype(int), size)
    pixel = np.arange(size)[None]
    weights = np.maximum(0.0, 1.0 - np.abs((pixel - center[:, None] + 0.5) / support))
    weights[(pixel < first[:, None]) | (pixel >= end[:, None])] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    # The most bits with which the largest weight fits int16.
    bits = next((b for b in range(22) if int(0.5 + weights.max() * 2 ** (b + 1)) >= 2 ** 15), 22)
    return (0.5 + weights * 2 ** bits).astype(np.int64), bits


def shrink_rows(gray, wanted):
    weights, bits = taps(gray.shape[1], wanted)
    sums = gray.astype(np.int64) @ weights.T
    return np.clip((sums + (1 << (bits - 1))) >> bits, 0, 255).astype(np.uint8)


def resize(gray, height, width):
    if gray.shape[1] != width:
        gray = shrink_rows(gray, width)
    return shrink_rows(gray.T, height).T if gray.shape[0] != height else gray
