"""usage: spoil_checkpoint.py spoil FILE TENSOR OUT: OUT is FILE, but the tensor's first value is NaN
       spoil_checkpoint.py describe CHECKPOINT: its state.json gets the sums of its files as they are, and its own"""
import hashlib
import json
import pathlib
import re
import struct
import sys


def spoil(source, name, out):
    data = bytearray(pathlib.Path(source).read_bytes())
    length = struct.unpack('<Q', data[:8])[0]
    at = 8 + length + json.loads(data[8:8 + length])[name]['data_offsets'][0]
    data[at:at + 4] = struct.pack('<f', float('nan'))
    pathlib.Path(out).write_bytes(data)


def describe(folder):
    path = pathlib.Path(folder, 'state.json')
    text = path.read_text()
    for name, said in json.loads(text)['files'].items():
        text = text.replace(said['sha256'], hashlib.sha256(path.with_name(name).read_bytes()).hexdigest())
    before, after = re.split('(?<="state_sha256": ")[0-9a-f]{64}', text)
    path.write_text(before + hashlib.sha256((before + after).encode()).hexdigest() + after)


globals()[sys.argv[1]](*sys.argv[2:])
