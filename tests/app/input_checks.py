"""Tables, wheels and zips that tests make; what a build is made of; scores and gray values of scripts/reference.
usage: input_checks.py FUNCTION ARGUMENTS..."""
import csv
import hashlib
import json
import os
import pathlib
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'scripts/reference'))


def own_table():
    rows = list(csv.DictReader(open(sys.argv[1] + '/Data_Entry_2017.csv')))
    with open('table.csv', 'w') as table:
        table.write('image,who,Effusion\n')
        for row in rows:
            table.write(f"{row['Image Index']},person-{row['Patient ID']},{int('Effusion' in row['Finding Labels'])}\n")


def components():
    version = json.load(open('version.json'))
    assert 'LibTorch' in {c['name'] for c in version['components']}, version
    assert all(c['version'] for c in version['components']), version


def two_tables():
    rows = list(csv.DictReader(open(sys.argv[1] + '/Data_Entry_2017.csv')))
    for name, spelt, part in (('plain', '{}', rows[::2]), ('zeros', '{:0>8}', rows[1::2]), ('point', '{}.0', rows[1::2])):
        with open(name + '.csv', 'w') as table:
            table.write('image,who,Effusion\n')
            for row in part:
                table.write(f"{row['Image Index']},{spelt.format(row['Patient ID'])},{int('Effusion' in row['Finding Labels'])}\n")


def lists():
    xray, scratch = sys.argv[1:]
    names = [n for f in ("odd", "odd_derived") for n in sorted(os.listdir(f"{xray}/{f}"))]
    skipped = ("truncated_", "badcrc_", "empty", "html", "webp_", "cmyk_")  # broken, or of a form that either side may refuse
    names = [n for n in names if n.lower().endswith((".png", ".jpg")) and not n.startswith(skipped)]
    with open(f"{scratch}/odd.csv", "w") as f:
        f.write("image,A,B\n" + "".join(f'"{n}",{i % 2},{i // 2 % 2}\n' for i, n in enumerate(names)))
    open(f"{scratch}/train.txt", "w").write("\n".join(names[:8]))
    open(f"{scratch}/test.txt", "w").write("\n".join(names[8:]))


def bundled_components():
    table = open(sys.argv[1]).read().lower()
    other_name = {'isa-l': 'libisal', 'gcc runtime': 'gcc-12', 'open mpi': 'libmpi', 'cuda runtime': 'libcudart', 'libtorch': 'libtorch_cpu',
                  'nccl': 'libnccl', 'fmt': 'fmtlib'}
    not_a_library = ('cli11', 'nlohmann-json', 'protozero', 'gdcm')  # headers alone; chexnet-dicom's
    names = [one['name'].lower() for one in json.loads(sys.argv[2])['components']]
    absent = [name for name in names if name not in not_a_library and other_name.get(name, name) not in table]
    assert len(names) > 14 and not absent, absent


def wheels():
    index, pins = sys.argv[1:]
    with open(pins, 'w') as out:
        for name, member in (('torch', 'torch/lib/libtorch_cpu.so'), ('nvidia_cuda_runtime', 'nvidia/cu13/include/cuda.h')):
            path = f'{index}/{name}-1.0-py3-none-any.whl'
            with zipfile.ZipFile(path, 'w') as wheel:
                wheel.writestr(member, 'as it was pinned')
                wheel.writestr(f'{name}-1.0.dist-info/METADATA', f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n')
                wheel.writestr(f'{name}-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
                wheel.writestr(f'{name}-1.0.dist-info/RECORD', '')
            digest = hashlib.sha256(open(path, 'rb').read()).hexdigest()
            out.write(f'{name.replace("_", "-")}==1.0 --hash=sha256:{digest}\n')


def zips():
    def pack(name, *members):
        with zipfile.ZipFile(f'{sys.argv[1]}/{name}.zip', 'w') as out:
            for member in members:
                out.writestr(member, 'as it was packed ' * 100)
    pack('libtorch', 'libtorch/lib/libtorch_cpu.so', 'libtorch/include/ATen/ATen.h')
    pack('headers', 'libtorch/include/ATen/ATen.h')
    pack('other', 'torchvision/lib/libtorchvision.so')
    open(f'{sys.argv[1]}/cut.zip', 'wb').write(open(f'{sys.argv[1]}/libtorch.zip', 'rb').read()[:2000])


def gray():  # by a Python with Pillow and numpy
    import types
    for absent in ('torch', 'torchvision', 'safetensors'):
        sys.modules[absent] = types.ModuleType(absent)
    sys.modules['safetensors'].safe_open = None
    import numpy as np
    from load_torchvision import gray_pixels
    of = lambda name: gray_pixels(sys.argv[1] + '/' + name).astype(int)
    sixteen = np.abs(of('odd_derived/g16_00011925_032.png') - of('nih352/images/00011925_032.png'))
    turned = np.abs(of('odd_derived/exif6_00001992_013.jpg') - of('nih352/images/00001992_013.png'))
    sys.exit(1 if sixteen.max() > 0 or turned.max() > 24 or turned.mean() > 1.5 else 0)


def scores():  # by a Python with PyTorch
    import torch
    from load_torchvision import load, preprocess
    xray, run = sys.argv[1:]
    net, about = load(run + '/checkpoints/last/model.safetensors')
    place = lambda n: next(p for p in (f'{xray}/odd/{n}', f'{xray}/odd_derived/{n}') if os.path.exists(p))
    worst = 0
    for row in csv.DictReader(open(run + '.csv')):
        with torch.no_grad():
            theirs = torch.sigmoid(net(preprocess(place(row['image']), about)))[0].tolist()
        worst = max([worst] + [abs(a - float(row['prob:' + f])) for f, a in zip(about['findings'], theirs)])
    print('largest difference of a probability:', worst)
    sys.exit(1 if worst > 2e-5 else 0)


globals()[sys.argv.pop(1)]()
