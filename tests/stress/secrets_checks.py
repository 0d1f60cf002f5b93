"""What secrets_test.sh gives to the commands, and a look at the environment of the converter's workers.
usage: secrets_checks.py FUNCTION ARGUMENTS..."""
import contextlib
import csv
import os
import pathlib
import signal
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / 'support'))
import dicom


def make_secrets():
    phantom, given = sys.argv[1:]
    rows = list(csv.DictReader(open(phantom + '/Data_Entry_2017.csv')))
    ids = {row['Patient ID']: f'mrnQZ{int(row["Patient ID"]):06d}' for row in rows}
    with open(given + '/table.csv', 'w') as table:
        table.write('image,who,Effusion\n')
        for row in rows:
            table.write(f"{row['Image Index']},{ids[row['Patient ID']]},{int('Effusion' in row['Finding Labels'])}\n")
    for i in range(40):
        data = dicom.picture(dicom.GRADIENT, instance=f'1.2.3.{i}', x00100010=('PN', 'Canaryname^Zoe'),
                             x00100020=('LO', 'mrnQZ900001'))
        pathlib.Path(f'{given}/dicom/{i:02d}.dcm').write_bytes(data)
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
