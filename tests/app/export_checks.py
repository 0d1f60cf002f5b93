"""What export writes, read without packages.
usage: export_checks.py FUNCTION ARGUMENTS..."""
import json
import os
import struct
import sys
from onnx_file import model


def onnx_files():
    def safetensors(path):
        data = open(path, 'rb').read()
        size = struct.unpack('<Q', data[:8])[0]
        header = json.loads(data[8:8 + size])
        about = json.loads(header.pop('__metadata__')['chexnet'])
        begin = {n: data[8 + size + t['data_offsets'][0]:8 + size + t['data_offsets'][1]] for n, t in header.items()}
        return about, {n: (t['shape'], begin[n]) for n, t in header.items() if t['dtype'] == 'F32'}

    for folder, run, layers in (('d', 'dense', {'Conv': 120, 'BatchNormalization': 121, 'Concat': 58, 'AveragePool': 3, 'MaxPool': 1, 'Gemm': 1, 'Sigmoid': 1, 'Cast': 1}),
                                ('r', 'res', {'Conv': 53, 'BatchNormalization': 53, 'Add': 16, 'MaxPool': 1, 'Gemm': 1, 'GlobalAveragePool': 1})):
        onnx = model(folder + '/model.onnx')
        about, tensors = safetensors(run + '/checkpoints/last/model.safetensors')
        assert (onnx['ir'], onnx['opset']) == (8, 17)
        for name, (shape, data) in tensors.items():
            assert onnx['constants'][name][0] == shape, name
            assert struct.pack(f'<{len(data) // 4}f', *onnx['constants'][name][1]) == data, name
        assert set(onnx['constants']) - set(tensors) == ({'gray.white', 'gray.mean', 'gray.std'} if folder == 'd' else set())
        known = set(onnx['constants']) | set(onnx['inputs'])
        for kind, inputs, outputs in onnx['nodes']:
            assert set(inputs) <= known, (kind, inputs)
            assert not set(outputs) & known
            known |= set(outputs)
        assert set(onnx['outputs']) <= known
        kinds = [kind for kind, _, _ in onnx['nodes']]
        assert {k: kinds.count(k) for k in layers} == layers, {k: kinds.count(k) for k in layers}
        assert json.loads(onnx['metadata']['chexnet']) == about
        labels, preprocessing = (json.load(open(f'{folder}/{name}.json')) for name in ('labels', 'preprocessing'))
        assert labels['findings'] == about['findings'] == json.loads(onnx['metadata']['findings'])
        assert open(folder + '/labels.txt').read().split('\n')[:-1] == about['findings']
        assert onnx['inputs'] == {'image': ((2, ['N', 1, 32, 32]) if folder == 'd' else (1, ['N', 3, 32, 32]))}
        assert onnx['outputs'] == {'probabilities' if folder == 'd' else 'logits': (1, ['N', 14])}
        assert preprocessing['input']['shape'] == onnx['inputs']['image'][1] and labels['output']['shape'] == ['N', 14]
        assert preprocessing['before_the_model']['resize']['width'] == 36 and preprocessing['before_the_model']['crop_begin']['top'] == 2
        triton = open(folder + '/config.pbtxt').read()
        assert ('TYPE_UINT8' in triton) == (folder == 'd') and 'dims: [ 14 ]' in triton
    said = json.load(open('d.json'))
    sums = dict(reversed(line.rstrip('\n').split('  ')) for line in open('d/SHA256SUMS'))
    assert said['files'] == sums and said['arch'] == 'densenet121' and said['vectors'] == 8 and said['folder'] == 'd', said


def vectors():
    folder = sys.argv[1]
    lines = [json.loads(line) for line in open('vectors.out')][:-1]
    vectors = json.load(open(folder + '/vectors.json'))['vectors']
    assert len(lines) == len(vectors) == 8
    for line, vector in zip(lines, vectors):
        assert line['image'] == folder + '/' + vector['image'] and line['probabilities'] == vector['probabilities'], (line, vector)
        assert os.path.exists(folder + '/' + vector['input'])
    assert len({json.dumps(v['probabilities']) for v in vectors}) == 8


def thresholds():
    rules = json.load(open("xrv_res/thresholds.json"))
    labels = json.load(open("xrv_res/labels.json"))["findings"]
    assert [f["finding"] for f in rules["findings"]] == labels, rules
    assert [t["rule"] for t in rules["findings"][0]["thresholds"]] == ["youden", "sensitivity 0.9", "specificity 0.9"], rules


def foreign():
    """A file that `export --weights torchvision` wrote, as a reproduction would have it: other names, no word of the findings but `NAME,NAME`."""
    data = open(sys.argv[1], 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + size])
    header = {'module.densenet121.' + name.replace('classifier.', 'classifier.0.'): tensor for name, tensor in header.items() if name != '__metadata__'}
    first = next(iter(header.values()))
    header.update({name: {'dtype': first['dtype'], 'shape': [0], 'data_offsets': [0, 0]} for name in sys.argv[3:] if ',' not in name})  # of another network
    header.update({'__metadata__': {'chexnet': json.dumps({'findings': names.split(',')})} for names in sys.argv[3:] if ',' in names})
    text = json.dumps(header).encode()
    open(sys.argv[2], 'wb').write(struct.pack('<Q', len(text)) + text + data[8 + size:])


def weights():
    def header(path):
        data = open(path, 'rb').read()
        head = json.loads(data[8:8 + struct.unpack('<Q', data[:8])[0]])
        head.pop('__metadata__')
        return {name: (t['dtype'], t['shape']) for name, t in head.items()}
    own = header('dense/checkpoints/last/model.safetensors')
    assert header('tv/weights.safetensors') == own
    gray = dict(own)
    gray['features.conv0.weight'] = ('F32', [64, 1, 7, 7])
    assert header('xrv/weights.safetensors') == gray
    res = header('xrv_res/weights.safetensors')
    assert res['conv1.weight'] == ('F32', [64, 1, 7, 7]) and res['layer4.2.bn3.num_batches_tracked'] == ('I64', []) and len(res) == 320
    assert all(kind in ('F32', 'I64') for kind, _ in res.values())


globals()[sys.argv.pop(1)]()
