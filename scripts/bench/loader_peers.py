#!/usr/bin/env python3
"""One peer's loader over a folder, one thread, in this process: images/s of one timed pass after one to warm up.
usage: loader_peers.py PEER FOLDER [workers]
  peers: pil, decode_gray, opencv, dali, tfdata, memmap, memmap_float
What each does is what its users write: read, decode, resize to 256, random 224 crop, flip, batches of 32. pil and
tfdata end in normalized float RGB, as in the CheXNet reproductions, memmap_float and dali in float gray; the others
stay 8-bit gray, as our ring does."""
import glob
import os
import sys
import time

BATCH, MEAN, STD = 32, [.485, .456, .406], [.229, .224, .225]


def timed(one_pass):
    one_pass()
    start = time.perf_counter()
    n = one_pass()
    print(n / (time.perf_counter() - start))


def pil_loader(files):
    import torchvision.transforms as T
    from PIL import Image
    change = T.Compose([T.Resize(256), T.RandomCrop(224), T.RandomHorizontalFlip(), T.ToTensor(),
                        T.Normalize(MEAN, STD)])
    return lambda i: change(Image.open(files[i]).convert('RGB'))


def gray_loader(files):
    from torchvision import io
    from torchvision.transforms import v2
    change = v2.Compose([v2.Resize(256, antialias=True), v2.RandomCrop(224), v2.RandomHorizontalFlip()])
    return lambda i: change(io.decode_image(io.read_file(files[i]), io.ImageReadMode.GRAY))


def opencv_loader(files):
    import cv2
    import numpy as np
    import torch
    cv2.setNumThreads(1)

    def load(i):
        decoded = cv2.imdecode(np.fromfile(files[i], np.uint8), cv2.IMREAD_GRAYSCALE)
        image = cv2.resize(decoded, (256, 256), interpolation=cv2.INTER_AREA)
        y, x = np.random.randint(0, 33, 2)
        image = image[y:y + 224, x:x + 224]
        if np.random.rand() < .5:
            image = cv2.flip(image, 1)
        return torch.from_numpy(np.ascontiguousarray(image))

    return load


def memmap_loader(raw, to_float):
    import numpy as np
    import torch
    from torchvision.transforms import v2
    steps = [v2.RandomCrop(224), v2.RandomHorizontalFlip()]
    if to_float:
        steps.append(v2.ToDtype(torch.float32, scale=True))
    change = v2.Compose(steps)
    return lambda i: change(torch.from_numpy(np.array(raw[i]))[None])


def run_torch(peer, folder, files, workers):
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset
    torch.set_num_threads(1)
    count = len(files)
    if peer.startswith('memmap'):
        raw = np.memmap(folder, np.uint8, 'r').reshape(-1, 256, 256)
        count = len(raw)
        load = memmap_loader(raw, peer == 'memmap_float')
    else:
        load = {'pil': pil_loader, 'decode_gray': gray_loader, 'opencv': opencv_loader}[peer](files)

    class Images(Dataset):
        def __len__(self):
            return count

        def __getitem__(self, i):
            return load(i), torch.zeros(14)

    loader = DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    timed(lambda: sum(len(x) for x, _ in loader))


def run_dali(files, workers):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=max(1, workers), device_id=None, prefetch_queue_depth=2)
    def pipe():
        encoded, labels = fn.readers.file(files=files, random_shuffle=True)
        decoded = fn.decoders.image(encoded, device='cpu', output_type=types.GRAY)
        x = fn.resize(decoded, size=256, antialias=True)
        return fn.crop_mirror_normalize(
            x, crop=(224, 224), crop_pos_x=fn.random.uniform(range=(0, 1)), crop_pos_y=fn.random.uniform(range=(0, 1)),
            mirror=fn.random.coin_flip(), mean=[127.], std=[64.], dtype=types.FLOAT), labels

    p = pipe()
    p.build()
    for _ in range(3):
        p.run()  # what the queue holds is not counted

    def one_pass():
        for _ in range(len(files) // BATCH):
            p.run()
        return len(files) // BATCH * BATCH

    timed(one_pass)


def run_tfdata(files, workers):
    import tensorflow as tf
    threads = max(1, workers)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    decode = tf.io.decode_png if files[0].endswith('.png') else tf.io.decode_jpeg

    def parse(path):
        x = tf.image.resize(decode(tf.io.read_file(path), channels=3), [256, 256])
        x = tf.image.random_flip_left_right(tf.image.random_crop(x, [224, 224, 3]))
        return (x / 255. - MEAN) / STD

    data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files))
    data = data.map(parse, num_parallel_calls=threads).batch(BATCH).prefetch(1).with_options(options)
    timed(lambda: sum(len(b) for b in data))


def main():
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    peer, folder = sys.argv[1:3]
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    files = sorted(glob.glob(folder + '/*')) if os.path.isdir(folder) else [folder]
    if peer == 'dali':
        run_dali(files, workers)
    elif peer == 'tfdata':
        run_tfdata(files, workers)
    else:
        run_torch(peer, folder, files, workers)


if __name__ == '__main__':
    main()
