"""What secrets_test.sh gives to the commands, and a look at the environment of the converter's workers.
usage: secrets_checks.py FUNCTION ARGUMENTS..."""
import contextlib
import csv
import os
import signal
import struct
import subprocess
import sys


def make_secrets():
    phantom, given = sys.argv[1:]
    rows = list(csv.DictReader(open(phantom + '/Data_Entry_2017.csv')))
    ids = {row['Patient ID']: f'mrnQZ{int(row["Patient ID"]):06d}' for row in rows}
    with open(given + '/table.csv', 'w') as table:
        table.write('image,who,Effusion\n')
        for row in rows:
            table.write(f"{row['Image Index']},{ids[row['Patient ID']]},{int('Effusion' in row['Finding Labels'])}\n")
    def element(group, number, vr, value):
        value += (b'\0' if vr in ('UI', 'OB') else b' ') * (len(value) % 2)
        size = b'\0\0' + struct.pack('<I', len(value)) if vr == 'OB' else struct.pack('<H', len(value))
        return struct.pack('<HH', group, number) + vr.encode() + size + value
    us = lambda group, number, n: element(group, number, 'US', struct.pack('<H', n))
    for i in range(40):
        meta = element(2, 2, 'UI', b'1.2.840.10008.5.1.4.1.1.1') + element(2, 3, 'UI', b'1.2.3.%d' % i) + \
            element(2, 0x10, 'UI', b'1.2.840.10008.1.2.1')
        data = element(8, 0x16, 'UI', b'1.2.840.10008.5.1.4.1.1.1') + element(8, 0x18, 'UI', b'1.2.3.%d' % i) + \
            element(8, 0x60, 'CS', b'DX') + element(0x10, 0x10, 'PN', b'Canaryname^Zoe') + \
            element(0x10, 0x20, 'LO', b'mrnQZ900001') + us(0x28, 2, 1) + element(0x28, 4, 'CS', b'MONOCHROME2') + \
            us(0x28, 0x10, 64) + us(0x28, 0x11, 64) + us(0x28, 0x100, 8) + us(0x28, 0x101, 8) + us(0x28, 0x102, 7) + \
            us(0x28, 0x103, 0) + element(0x7fe0, 0x10, 'OB', bytes((x * y) % 256 for y in range(64) for x in range(64)))
        with open(f'{given}/dicom/{i:02d}.dcm', 'wb') as file:
            file.write(b'\0' * 128 + b'DICM' + element(2, 0, 'UL', struct.pack('<I', len(meta)))[:8] +
                       struct.pack('<I', len(meta)) + meta + data)
    key = bytes((i * 37 + 11) % 256 for i in range(32))
    open(given + '/privacy.key', 'wb').write(key)
    names = ('AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN')
    secrets = {name: os.environ[name].encode() for name in names}
    secrets |= {'key_of_pseudonyms': key, 'name_of_DICOM': b'Canaryname', 'patient_ids': b'mrnQZ'}
    with open(given + '/secrets', 'w') as out:
        out.writelines(f'{name}\t{text.hex()}\n' for name, text in secrets.items())


def look_at_workers():
    program, given = sys.argv[1:]
    command = [program, given + '/dicom', '--out', 'set', '--key-file', given + '/privacy.key',
               '--map-file', given + '/map.csv']
    with open('said/dicom', 'w') as said:
        converter = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
    def workers():
        return open(f'/proc/{converter.pid}/task/{converter.pid}/children').read().split()
    def environment(process):
        try:
            with open(f'/proc/{process}/environ', 'rb') as file:
                return file.read()
        except OSError:  # it has ended
            return b''
    found = []
    while converter.poll() is None and len(found) < 2:
        found = [text for text in map(environment, [converter.pid, *workers()]) if b'HOME=' in text]
    for worker in workers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(worker), signal.SIGABRT)
    converter.wait()
    if len(found) < 2:
        sys.exit('no environment of a worker was seen')
    sys.exit('the keys are there' if any(b'canary' in text or b'CANARY' in text for text in found) else 0)


globals()[sys.argv.pop(1)]()
