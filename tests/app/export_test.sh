#!/usr/bin/env bash
# export: a folder that others can use and check. The ONNX file is read here without packages; whether it computes what the network
# does is tests/model/onnx_test.cpp's and, by runtimes, tests/slow/export_runtimes_test.sh's.
set -u
source tests/lib.sh
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
export PYTHONPATH=$source_folder/tests/support
train() { "$program" train "$small" --out "$scratch/$1" --set model.arch="$2" --set train.max_steps=2 --set data.val_fraction=0 --set eval.splits=[] "${@:3}" 2>"$scratch/log"; }
check "a DenseNet" train dense densenet121
check "a ResNet, in bf16" train res resnet50 --set train.precision=bf16 --set data.val_fraction=0.2
cd "$scratch"

"$program" export dense --out d --vectors 3 --json >d.json 2>log; check "exports the DenseNet" [ $? = 0 ]
check "exports the ResNet: float in, logits out" "$program" export res --out r --vectors 3 --input float --output logits 2>log
for folder in d r; do
  check "$folder: sha256sum agrees" sh -c "cd $folder && sha256sum --quiet -c SHA256SUMS"
  check "$folder: with all files" [ "$(cd $folder && find . -type f ! -name SHA256SUMS | wc -l)" = "$(wc -l <$folder/SHA256SUMS)" ]
done
check "no patient, path, host or user in what is text" sh -c "! grep -rlE '$(hostname)|$scratch|$phantom|[0-9]{8}_[0-9]{3}' d/*.json d/*.txt d/*.pbtxt"
python3 - <<'PY' && echo "ok: the ONNX files hold the checkpoints' numbers, each node's inputs are known" || fail "ONNX files"
import json, struct
from onnx_file import model

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
assert said['files'] == sums and said['arch'] == 'densenet121' and said['vectors'] == 3 and said['folder'] == 'd', said
PY

# Vectors: predict's own probabilities of the drawings.
for name in d:dense r:res; do
  folder=${name%:*} run=${name#*:}
  "$program" predict "$run" $folder/vectors/000.png $folder/vectors/001.png $folder/vectors/002.png --set train.precision=fp32 --json >vectors.out 2>log
  check "$folder: predict gives the vectors' probabilities" python3 - $folder <<'PY'
import json, os, sys
folder = sys.argv[1]
lines = [json.loads(line) for line in open('vectors.out')][:-1]
vectors = json.load(open(folder + '/vectors.json'))['vectors']
assert len(lines) == len(vectors) == 3
for line, vector in zip(lines, vectors):
    assert line['image'] == folder + '/' + vector['image'] and line['probabilities'] == vector['probabilities'], (line, vector)
    assert os.path.exists(folder + '/' + vector['input'])
assert len({json.dumps(v['probabilities']) for v in vectors}) == 3
PY
done
check "the same export twice" "$program" export dense --out again --vectors 3 2>log
check "is equal, byte for byte" diff -r d again

# Weights for other libraries, and back.
check "torchvision's weights" "$program" export dense --weights torchvision --out tv --vectors 1 2>log
check "torchxrayvision's" "$program" export dense --weights torchxrayvision --out xrv --vectors 1 2>log
check "the ResNet's" "$program" export res --weights torchxrayvision --out xrv_res --vectors 1 2>log
check "no ONNX and no Triton beside them" [ "$(cd tv && echo *)" = "SHA256SUMS labels.json preprocessing.json vectors vectors.json weights.safetensors" ]
check "thresholds of a model that was scored on validation" python3 - <<'PY'
import json
rules = json.load(open("xrv_res/thresholds.json"))
labels = json.load(open("xrv_res/labels.json"))["findings"]
assert [f["finding"] for f in rules["findings"]] == labels, rules
assert [t["rule"] for t in rules["findings"][0]["thresholds"]] == ["youden", "sensitivity 0.9", "specificity 0.9"], rules
PY
python3 - <<'PY' && echo "ok: names and shapes as load_state_dict takes them" || fail "weights"
import json, struct
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
PY
"$program" predict dense d/vectors/000.png --out own.csv 2>log
"$program" predict tv/weights.safetensors d/vectors/000.png --out tv.csv 2>log
check "torchvision's weights predict the same" cmp own.csv tv.csv
check "the ResNet has thresholds" grep -q decision_rules res/checkpoints/last/model.safetensors
check "its file for torchxrayvision has none, as they are of other weights" sh -c '! grep -q decision_rules xrv_res/weights.safetensors'
check "and it is read" "$program" predict xrv_res/weights.safetensors d/vectors/000.png --out xrv_res.csv 2>log
check "torchxrayvision's are read" "$program" predict xrv/weights.safetensors d/vectors/000.png --out xrv.csv 2>log
check "and nearly predict it: but for the picture's edge" python3 -c "
import csv
own, xrv = (list(csv.DictReader(open(f)))[0] for f in ('own.csv', 'xrv.csv'))
worst = max(abs(float(own[k]) - float(xrv[k])) for k in own if k.startswith('prob:'))
print('torchxrayvision: largest difference at 32 pixels', worst)
assert 0 < worst < 0.2"
check "model.weights takes a torchxrayvision file" "$program" train "$small" --out "$scratch/tuned" --set model.weights="$scratch/xrv/weights.safetensors" --set train.max_steps=1 --set data.val_fraction=0 --set eval.splits=[] 2>log
check "and says how it was read" grep -q "the first convolution has one channel: taken for TorchXRayVision's" log

# Refusals.
cp -r d before
refused 4 "d: is there already, and nothing in it is replaced" export dense --out d
check "nothing was touched" diff -r d before
touch file
refused 4 "file: is there already" export dense --out file
refused 4 "nowhere/x: no folder can be made beside it" export dense --out nowhere/x
refused 4 "no checkpoint here" export "$phantom" --out new
refused 2 "s3://" export dense --out s3://bucket/x
refused 2 "--weights excludes" export dense --out new --weights torchvision --output logits
refused 2 "--weights" export dense --out new --weights keras
cp d/SHA256SUMS none.safetensors
refused 4 "none.safetensors" export none.safetensors --out new
check "no refused export left anything" [ -z "$(ls -A | grep -E '^new|partial')" ]
mkdir empty
check "an empty folder is taken" "$program" export tv/weights.safetensors --out empty/ --vectors 1 2>log
check "an exported file exports to the same network" cmp d/model.onnx empty/model.onnx
finish
