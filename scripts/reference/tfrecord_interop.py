#!/usr/bin/env python3
"""TFRecord files of ours read by others, and the other way round, byte for byte.
usage: tfrecord_interop.py PROGRAM FOLDER   (FOLDER: a phantom set; needs the Python package tfrecord, tensorflow, or both)"""
import glob, os, subprocess, sys

import phantom_config

program, folder = sys.argv[1:3]
work = os.path.join(folder, 'interop')
os.makedirs(work, exist_ok=True)
config = os.path.join(work, 'cfg.yaml')
phantom_config.write(config, folder)


def pack(out, *more):
    subprocess.run([program, 'pack', config, '--out', out, *more], check=True, stderr=subprocess.DEVNULL)


ours = os.path.join(work, 'ours')
pack(ours, '--format', 'tfrecord', '--per-shard', '50')
files = {os.path.basename(p): open(p, 'rb').read() for p in glob.glob(folder + '/images/*.png')}
shards = sorted(p for p in glob.glob(ours + '/train-*') if not p.endswith('.index'))
pack(os.path.join(work, 'folder.pack'))
tested = 0


def check(name, records, write):
    """records(): (filename, image, labels, label names) of our shards; write(path, rows) writes a shard by other code."""
    global tested
    rows = list(records())
    assert len(rows) == len(files), (len(rows), len(files))
    for filename, image, labels, names in rows:
        assert files[filename] == image, filename
        assert len(labels) == 14 and names[0] == 'Atelectasis' and set(labels) <= {0, 1}, (labels, names)
    theirs = os.path.join(work, name)
    os.makedirs(theirs, exist_ok=True)
    write(os.path.join(theirs, 'train-00000-of-00001'), rows)
    out = os.path.join(work, name + '.pack')
    pack(out, '--set', f'data.images=[{theirs}]')
    assert open(out, 'rb').read() == open(os.path.join(work, 'folder.pack'), 'rb').read(), 'packs differ'
    print(f'{name}: {len(rows)} records of ours read there, written there and read by us: the same bytes')
    tested += 1


try:
    import tfrecord
    from tfrecord.reader import tfrecord_loader

    def by_package():
        for shard in shards:
            for r in tfrecord_loader(shard, None, {'image/encoded': 'byte', 'image/filename': 'byte', 'image/label': 'int'}):
                yield bytes(r['image/filename']).decode(), bytes(r['image/encoded']), list(r['image/label']), ['Atelectasis']

    def write_package(path, rows):
        writer = tfrecord.TFRecordWriter(path)
        for filename, image, labels, _ in rows:
            writer.write({'image/encoded': (image, 'byte'), 'image/filename': (filename.encode(), 'byte'),
                          'image/label': ([int(v) for v in labels], 'int')})
        writer.close()

    check('tfrecord-package', by_package, write_package)
except ImportError:
    print('skipped: the Python package tfrecord is not installed')
try:
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    import tensorflow as tf

    def by_tensorflow():
        spec = {'image/encoded': tf.io.FixedLenFeature([], tf.string), 'image/filename': tf.io.FixedLenFeature([], tf.string),
                'image/label': tf.io.FixedLenFeature([14], tf.int64), 'image/label_names': tf.io.FixedLenFeature([14], tf.string)}
        for raw in tf.data.TFRecordDataset(shards):
            r = tf.io.parse_single_example(raw, spec)
            yield (r['image/filename'].numpy().decode(), r['image/encoded'].numpy(), r['image/label'].numpy().tolist(),
                   [n.decode() for n in r['image/label_names'].numpy()])

    def write_tensorflow(path, rows):
        feature = lambda **kw: tf.train.Feature(**kw)
        with tf.io.TFRecordWriter(path) as w:
            for filename, image, labels, _ in rows:
                w.write(tf.train.Example(features=tf.train.Features(feature={
                    'image/encoded': feature(bytes_list=tf.train.BytesList(value=[image])),
                    'image/filename': feature(bytes_list=tf.train.BytesList(value=[filename.encode()])),
                    'image/label': feature(int64_list=tf.train.Int64List(value=labels))})).SerializeToString())

    check('tensorflow', by_tensorflow, write_tensorflow)
except ImportError:
    print('skipped: tensorflow is not installed')
sys.exit(0 if tested else 77)
