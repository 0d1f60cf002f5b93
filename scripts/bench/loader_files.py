#!/usr/bin/env python3
"""The files that scripts/bench/loader reads. usage: loader_files.py SOURCE WORK
Of the 1024 x 1024 8-bit gray PNG files in SOURCE, ten times over: WORK/png, WORK/jpeg (quality 90), and
WORK/raw256.bin, 2,000 images of 256 x 256 as they are in memory. WORK/png_set and WORK/many are links to
them (the second: many images of few files), each with a table and a config."""
import glob
import os
import shutil
import sys

import numpy as np
from PIL import Image

MANY = 2000


def is_gray_original(file):
    image = Image.open(file)
    return image.mode == 'L' and image.size == (1024, 1024)


def write_set(work, folder, names, count):
    os.makedirs(f'{work}/{folder}')
    rows = ['image,finding']
    for i in range(count):
        os.symlink(f'{work}/png/{names[i % len(names)]}.png', f'{work}/{folder}/{i:05d}_000.png')
        rows.append(f'{i:05d}_000.png,{i % 2}')
    with open(f'{work}/{folder}.csv', 'w') as out:
        out.write('\n'.join(rows) + '\n')
    with open(f'{work}/{folder}.yaml', 'w') as out:
        out.write('data:\n'
                  f'  manifest: {{format: csv, path: {work}/{folder}.csv}}\n'
                  f'  images: [{work}/{folder}]\n')


def main():
    source, work = sys.argv[1:]
    os.makedirs(f'{work}/png')
    os.makedirs(f'{work}/jpeg')
    files = [f for f in sorted(glob.glob(f'{source}/*.png')) if is_gray_original(f)]
    names = []
    for copy in range(10):
        for file in files:
            name = f'{copy:02d}_{os.path.basename(file)[:-4]}'
            shutil.copy(file, f'{work}/png/{name}.png')
            Image.open(file).save(f'{work}/jpeg/{name}.jpg', quality=90)
            names.append(name)
    pixels = [np.asarray(Image.open(f).resize((256, 256))).tobytes() for f in files]
    with open(f'{work}/raw256.bin', 'wb') as out:
        for i in range(MANY):
            out.write(pixels[i % len(pixels)])
    write_set(work, 'png_set', names, len(names))
    write_set(work, 'many', names, MANY)
    print(f'{len(files)} images, {len(names)} files each', file=sys.stderr)


if __name__ == '__main__':
    main()
