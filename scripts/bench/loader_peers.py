#!/usr/bin/env python3
"""One peer's loader over a folder, one thread, in this process: images/s of one timed pass after one to warm up.
usage: loader_peers.py PEER FOLDER [workers]      peers: pil, decode_gray, opencv, dali, tfdata, memmap, memmap_float
What each does is what its users write: read, decode, resize to 256, random 224 crop, flip, batches of 32. pil and tfdata
end in normalized float RGB, as in the CheXNet reproductions, memmap_float and dali in float gray; the others stay
8-bit gray, as our ring does."""
import glob, os, sys, time

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
peer, folder = sys.argv[1:3]
workers = int(sys.argv[3]) if len(sys.argv) > 3 else 0
BATCH, MEAN, STD = 32, [.485, .456, .406], [.229, .224, .225]
files = sorted(glob.glob(folder + '/*')) if os.path.isdir(folder) else [folder]


def timed(one_pass):
    one_pass()
    start = time.perf_counter()
    n = one_pass()
    print(n / (time.perf_counter() - start))


if peer in ('pil', 'decode_gray', 'opencv', 'memmap', 'memmap_float'):
    import numpy as np, torch
    from torch.utils.data import DataLoader, Dataset
    torch.set_num_threads(1)
    if peer == 'pil':
        import torchvision.transforms as T
        from PIL import Image
        change = T.Compose([T.Resize(256), T.RandomCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
        load = lambda i: change(Image.open(files[i]).convert('RGB'))
    elif peer == 'decode_gray':
        from torchvision import io
        from torchvision.transforms import v2
        change = v2.Compose([v2.Resize(256, antialias=True), v2.RandomCrop(224), v2.RandomHorizontalFlip()])
        load = lambda i: change(io.decode_image(io.read_file(files[i]), io.ImageReadMode.GRAY))
    elif peer == 'opencv':
        import cv2
        cv2.setNumThreads(1)
        def load(i):
            a = cv2.resize(cv2.imdecode(np.fromfile(files[i], np.uint8), cv2.IMREAD_GRAYSCALE), (256, 256), interpolation=cv2.INTER_AREA)
            y, x = np.random.randint(0, 33, 2)
            a = a[y:y + 224, x:x + 224]
            return torch.from_numpy(np.ascontiguousarray(cv2.flip(a, 1) if np.random.rand() < .5 else a))
    else:
        from torchvision.transforms import v2
        raw = np.memmap(folder, np.uint8, 'r').reshape(-1, 256, 256)
        files = range(len(raw))
        steps = [v2.RandomCrop(224), v2.RandomHorizontalFlip()]
        if peer == 'memmap_float':
            steps.append(v2.ToDtype(torch.float32, scale=True))
        change = v2.Compose(steps)
        load = lambda i: change(torch.from_numpy(np.array(raw[i]))[None])

    class Images(Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            return load(i), torch.zeros(14)

    loader = DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    timed(lambda: sum(len(x) for x, _ in loader))
elif peer == 'dali':
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=max(1, workers), device_id=None, prefetch_queue_depth=2)
    def pipe():
        encoded, labels = fn.readers.file(files=files, random_shuffle=True)
        x = fn.resize(fn.decoders.image(encoded, device='cpu', output_type=types.GRAY), size=256, antialias=True)
        return fn.crop_mirror_normalize(x, crop=(224, 224), crop_pos_x=fn.random.uniform(range=(0, 1)), crop_pos_y=fn.random.uniform(range=(0, 1)),
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
elif peer == 'tfdata':
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelizm_threads(1)
    tf.config.threading.set_inter_op_parallelizm_threads(max(1, workers))
    options = tf.data.Options()
    options.threading.private_threadpool_size = max(1, workers)
    options.threading.max_intra_op_parallelizm = 1

    def parse(path):
        raw = tf.io.read_file(path)
        x = tf.io.decode_png(raw, channels=3) if files[0].endswith('.png') else tf.io.decode_jpeg(raw, channels=3)
        x = tf.image.random_flip_left_right(tf.image.random_crop(tf.image.resize(x, [256, 256]), [224, 224, 3]))
        return (x / 255. - MEAN) / STD

    data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files)).map(parse, num_parallel_calls=max(1, workers)).batch(BATCH).prefetch(1).with_options(options)
    timed(lambda: sum(len(b) for b in data))
