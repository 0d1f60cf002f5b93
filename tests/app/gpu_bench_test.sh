#!/usr/bin/env bash
# scripts/bench/gpu from end to end, on the CPU: every stage gives its part of the object, and what does not fit is named.
source tests/lib.sh
export CHEXNET_PROGRAM=$program
check "the command ends well without a GPU" scripts/bench/gpu --device cpu --quick --no-compile --budget-s 1700 --out "$scratch/gpu.json" >"$scratch/table" 2>"$scratch/log"
cat >"$scratch/look.py" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
step, = found['steps']
assert step['ours']['images_per_s'] > 0, step
assert found['operators'][0]['rows'], found['operators']
assert found['loader'][0]['images_per_s'] > 0, found['loader']
assert [t['result'] for t in found['tests']] == ['skipped'], found['tests']
assert [r['level'] for r in found['self_test']] == ['SKIP'], found['self_test']
assert found['dropped'] == [], found['dropped']
met = {m['mark']: m['met'] for m in found['marks']}
assert met['self-test: no layer disagrees'] is None, met
if 'torch' in found['pytorch']:
    assert step['eager']['images_per_s'] > 0, step
    assert met['as fast as PyTorch eager or faster'] is not None, met
else:
    print('skipped: PyTorch\'s side, because python3 has no torch and torchvision')
    assert 'error' in step['eager'] and met['as fast as PyTorch eager or faster'] is None, found
PYTHON
check "every stage has its part" python3 "$scratch/look.py" "$scratch/gpu.json"
check "the table has a row of the step" grep -q "^densenet121      2   64 " "$scratch/table"
scripts/bench/gpu --device cpu --budget-s 1 --out "$scratch/short.json" >"$scratch/table" 2>>"$scratch/log"
check "without time all is dropped by name" grep -q "^dropped for want of time: ours: resnet50, batch 256, 512 px" "$scratch/table"
[ "$failures" = 0 ] || tail -n 20 "$scratch/log"
finish
