#!/usr/bin/env bash
# predict --dicom-sr and --dicom-sc on files written here value by value: what comes back belongs to patient and study of its picture, says
# what predict says, and is read by dcmtk (where it is installed).
set -u
source tests/lib.sh
[ -x "$CHEXNET_BUILD/chexnet-dicom" ] || { echo "skipped: built without GDCM"; exit 77; }
cd "$scratch"
cat >dicom.py <<'PY'
import struct
LONG = ('OB', 'OW', 'SQ', 'UN', 'UT')
def element(group, number, vr, value):
    if len(value) % 2:
        value += b'\0' if vr in ('UI', 'OB', 'OW') else b' '
    head = struct.pack('<HH', group, number) + vr.encode()
    return head + (b'\0\0' + struct.pack('<I', len(value)) if vr in LONG else struct.pack('<H', len(value))) + value
def write(name, patient, study, instance='1.2.3.4', modality=b'DX', part=b''):
    meta = element(2, 2, 'UI', b'1.2.840.10008.5.1.4.1.1.1') + element(2, 3, 'UI', b'1.2.3') + element(2, 0x10, 'UI', b'1.2.840.10008.1.2.1')
    us = lambda g, e, n: ((g, e), element(g, e, 'US', struct.pack('<H', n)))
    text = lambda g, e, vr, t: ((g, e), element(g, e, vr, t))
    data = dict([text(8, 0x05, 'CS', b'ISO_IR 192'), text(8, 0x16, 'UI', b'1.2.840.10008.5.1.4.1.1.1'), text(8, 0x20, 'DA', b'20260102'),
                 text(8, 0x50, 'SH', b'ACC-7'), text(8, 0x60, 'CS', modality), text(0x18, 0x15, 'CS', part), text(0x10, 0x10, 'PN', patient), text(0x10, 0x20, 'LO', b'id 7'),
                 text(0x10, 0x1010, 'AS', b'62'), us(0x28, 2, 1), text(0x28, 4, 'CS', b'MONOCHROME2'), us(0x28, 0x10, 64), us(0x28, 0x11, 64),
                 us(0x28, 0x100, 8), us(0x28, 0x101, 8), us(0x28, 0x102, 7), us(0x28, 0x103, 0),
                 ((0x7fe0, 0x10), element(0x7fe0, 0x10, 'OB', bytes((x * y) % 256 for y in range(64) for x in range(64))))])
    if instance:
        data |= dict([text(8, 0x18, 'UI', instance.encode()), text(0x20, 0x0d, 'UI', study), text(0x20, 0x0e, 'UI', study + b'.1')])
    with open(name, 'wb') as file:
        file.write(b'\0' * 128 + b'DICM' + element(2, 0, 'UL', struct.pack('<I', len(meta))) + meta + b''.join(data[k] for k in sorted(data)))
def read(name):
    """{(group, element): bytes} of a file's own level, explicit VR little endian; sequences of undefined length are skipped."""
    data = open(name, 'rb').read()
    assert data[128:132] == b'DICM', name
    found, at = {}, 132
    while at < len(data):
        group, number = struct.unpack_from('<HH', data, at); vr = data[at + 4:at + 6].decode()
        if vr in LONG: size, at = struct.unpack_from('<I', data, at + 8)[0], at + 12
        else: size, at = struct.unpack_from('<H', data, at + 6)[0], at + 8
        if size == 0xffffffff: at = skip(data, at)
        else: found[group, number], at = data[at:at + size], at + size
    return found
def skip(data, at):
    """Behind the sequence of undefined length whose items begin at `at`."""
    depth = 1
    while depth:
        tag, size = struct.unpack_from('<HH', data, at), struct.unpack_from('<I', data, at + 4)[0]
        if tag in ((0xfffe, 0xe0dd), (0xfffe, 0xe00d)): depth, at = depth - 1, at + 8
        elif tag == (0xfffe, 0xe000): depth, at = depth + 1, at + 8
        else:
            vr = data[at + 4:at + 6].decode()
            size, at = (struct.unpack_from('<I', data, at + 8)[0], at + 12) if vr in LONG else (struct.unpack_from('<H', data, at + 6)[0], at + 8)
            if size == 0xffffffff: depth += 1
            else: at += size
    return at
PY
python3 - <<'PY'
import os
from dicom import write
os.mkdir('in')
write('in/a.dcm', 'Müller^Zoë'.encode(), b'1.2.840.1.7')
write('in/b.dcm', 'Müller^Zoë'.encode(), b'1.2.840.1.7', '1.2.3.5')
write('in/c.dcm', b'Nobody', b'', instance='')
write('in/e.dcm', b'Nobody', b'', instance='not a uid')
open('in/d.dcm', 'wb').write(open('in/a.dcm', 'rb').read()[:900])
PY
cp "$phantom"/images/00000001_000.png in/
check "a model" "$program" train "$small" --out run --set train.max_steps=4 2>log
check "predict with reports and captures" "$program" predict run in --out scores.csv --dicom-sr sr --dicom-sc sc --heatmap-findings Mass,Effusion 2>log
check "a file without UIDs has no report, and a warning" grep -q "c.dcm: has no UIDs of study, series and instance" log
check "so has one whose UID is none" grep -q "e.dcm: 'not a uid' is no UID" log
check "two reports, two captures of each file, nothing else" [ "$(ls -A sr | wc -l) $(ls -A sc | wc -l)" = "2 4" ]
python3 - <<'PY' && echo "ok: patient, study and picture are those of the source" || fail=1
import glob
from dicom import read
reports, captures = [read(f) for f in sorted(glob.glob('sr/*'))], [read(f) for f in sorted(glob.glob('sc/*'))]
text = lambda e, *tag: e[tag].rstrip(b' \0')
for file in reports + captures:
    assert text(file, 0x10, 0x10) == 'Müller^Zoë'.encode() and text(file, 0x10, 0x20) == b'id 7' and text(file, 8, 0x05) == b'ISO_IR 192'
    assert text(file, 0x20, 0x0d) == b'1.2.840.1.7' and text(file, 8, 0x50) == b'ACC-7'
    assert (0x10, 0x1010) not in file  # "62" is no age
    assert text(file, 0x20, 0x0e) != b'1.2.840.1.7.1'
assert len({text(f, 8, 0x18) for f in reports + captures}) == 6
assert len({text(f, 0x20, 0x0e) for f in reports}) == 1 == len({text(f, 0x20, 0x0e) for f in captures})
assert all(text(f, 8, 0x16) == b'1.2.840.10008.5.1.4.1.1.88.22' for f in reports)
assert all(text(f, 8, 0x16) == b'1.2.840.10008.5.1.4.1.1.7' and len(f[0x7fe0, 0x10]) >= 3 * 64 * 64 for f in captures)
PY
[ -z "${fail:-}" ] || { echo "FAILED: patient, study and picture"; failures=$((failures + 1)); }
check "two ranks" "$program" predict run in --ranks 2 --dicom-sr sr2 --dicom-sc sc2r --heatmap-findings Mass,Effusion 2>log
check "write as many" [ "$(ls sr2) $(ls -A sc2r)" = "$(ls sr) $(ls -A sc)" ]
if command -v dsrdump >/dev/null; then
  dsrdump -Ec +Pu +Pl "$(ls sr/* | head -1)" >dump 2>err; check "dcmtk reads the report" [ $? = 0 ]
  check "without an error" sh -c '! grep -q "^E:" err'
  python3 - <<'PY' || failures=$((failures + 1))
import csv, re
row = next(r for r in csv.DictReader(open('scores.csv')) if r['image'].endswith('a.dcm'))
dump = open('dump').read()
for name, value in row.items():
    if not name.startswith('prob:'): continue
    found = re.search(rf'contains NUM:\(,,"{re.escape(name[5:])}"\)="([0-9.]+)"', dump)
    assert found and abs(float(found[1]) - float(value)) < 1e-6, (name, value, found)
assert 'Not a medical device' in dump
print('ok: its numbers are those of the table')
PY
else
  echo "skipped: no dsrdump (dcmtk)"
fi
# What is no chest X-ray has no score and no report, unless it is asked for; then the report says what it is.
python3 - <<'PY'
import os
from dicom import write
os.mkdir('parts')
write('parts/ct.dcm', b'A^B', b'1.2.840.1.9', '1.2.4.1', modality=b'CT', part=b'ABDOMEN')
write('parts/tibia.dcm', b'A^B', b'1.2.840.1.9', '1.2.4.2', modality=b'CR', part=b'EXTREMITY')
write('parts/capture.dcm', b'A^B', b'1.2.840.1.9', '1.2.4.3', modality=b'SC')
PY
check "a CT, a tibia and a capture" "$program" predict run parts --out parts.csv --dicom-sr parts.sr --dicom-sc parts.sc --heatmap-findings Mass 2>log
check "one is scored, with a note" [ "$(cut -d, -f1,2 parts.csv | grep -c 'dcm,0')  $(grep -c '^parts/capture.dcm,0.*,,secondary capture$' parts.csv)" = "1  1" ]
check "the others say why not" eval 'grep -q "^parts/ct.dcm,,.*(Modality is CT; BodyPartExamined is ABDOMEN)" parts.csv && grep -q "^parts/tibia.dcm,,.*(BodyPartExamined is EXTREMITY)" parts.csv'
check "and have no report and no capture" [ "$(ls parts.sr | wc -l) $(ls -A parts.sc | wc -l)" = "1 1" ]
check "nothing is said of a temporary folder" sh -c "! grep -q chexnet-predict log"
check "--any-dicom scores all" "$program" predict run parts --out any.csv --dicom-sr any.sr --any-dicom 2>log
check "with notes" [ "$(grep -cE ',,(secondary capture|BodyPartExamined is EXTREMITY|Modality is CT; BodyPartExamined is ABDOMEN)$' any.csv)" = 3 ]
check "which the reports have" [ "$(grep -la 'BodyPartExamined is EXTREMITY' any.sr/* | wc -l)" = 1 ]
check "a folder that holds something is refused (exit 4)" sh -c "'$program' predict run in --dicom-sr sr >/dev/null 2>log; [ \$? = 4 ] && grep -q 'is not an empty folder' log"
check "pictures that are not DICOM: said, and no folder" sh -c "'$program' predict run in/00000001_000.png --dicom-sr none >/dev/null 2>log && grep -q 'none of the scored images is a DICOM file' log && [ ! -e none ]"
python3 -c "from dicom import write; write('in/b.dcm', b'Other', b'1.2.840.9', '9.9.9')"
cp in/b.dcm other.dcm
python3 -c "from dicom import write; import os; write('long.dcm', b'A^B', b'1.2.840.1.8', '1.2.3.6'); os.rename('long.dcm', 'x' * 245 + '.dcm')"
check "a long name is cut" sh -c "'$program' predict run xxx*.dcm --dicom-sr long >/dev/null 2>log && [ \$(ls long | wc -l) = 1 ]"
touch file; ln -s nowhere link
for place in file link; do check "no folder: $place (exit 4, before the work)" sh -c "'$program' predict run in --out early.csv --dicom-sr $place >/dev/null 2>log; [ \$? = 4 ] && [ ! -e early.csv ]"; done
mkfifo pipe.dcm
python3 - <<'PY'
import json
path = lambda p: p.encode().hex()
def request(name, **image):
    json.dump({'request': 'r', 'model': {'network': 'n', 'version': '1', 'sha256': 's', 'rule': ''},
               'images': [{'file': path('other.dcm'), 'instance': '9.9.9', 'findings': [{'name': n, 'probability': 0.5, 'calibrated': None, 'threshold': None, 'positive': None}
               for n in ('気胸', 'a\\b', 'Opacity of the left lung and all that is around it, which is a long name indeed')], 'captures': [], 'sr': path(name + '.sr')} | image]}, open(name, 'w'))
request('fine'); request('swapped', instance='1.1'); request('pipe', file=path('pipe.dcm'))
PY
converter=$CHEXNET_BUILD/chexnet-dicom
check "names in another script" sh -c "'$converter' --results fine | grep -q '\"reports\":1'"
! command -v dsrdump >/dev/null || check "dcmtk reads them" sh -c "dsrdump -Ec +Pu fine.sr >dump 2>err && ! grep -q '^E:' err && [ \$(grep -c 'contains NUM' dump) = 3 ]"
check "a picture that was exchanged has no report" sh -c "'$converter' --results swapped 2>log | grep -q '\"failed\":1' && [ ! -e swapped.sr ] && grep -q 'is another picture than the one that was scored' log"
check "a pipe holds nobody" timeout 20 sh -c "'$converter' --results pipe 2>log | grep -q '\"failed\":1'"
check "a report is not written over (exit 4)" sh -c "'$converter' --results fine >/dev/null 2>log; [ \$? = 4 ] && grep -q 'is there already' log"
check "what is no request (exit 3)" sh -c "echo '{}' >no; '$converter' --results no >/dev/null 2>log; [ \$? = 3 ] && grep -q 'is no list of results' log"
mkdir tmp; check "nothing stays among the temporary files" env TMPDIR="$scratch/tmp" sh -c "'$program' predict run in --dicom-sc sc2 >/dev/null 2>&1; [ -z \"\$(ls tmp)\" ]"

# kill -9 in the midst: nobody goes on writing, and the next command removes what is left, pictures of patients too.
mkdir many tmp2 && for i in $(seq 30); do cp other.dcm "many/$i.dcm"; done
reports() { ls killed 2>/dev/null | grep -c dcm; }
slow_images 500  # each report is half a second late
TMPDIR=$scratch/tmp2 "${slow[@]}" SLOW_NAME=.dcm "$program" predict run many --dicom-sr killed >/dev/null 2>&1 & process=$!
await "two reports are written" eval '[ "$(reports)" -ge 2 ]'
kill -9 $process; wait $process 2>/dev/null
await "nobody goes on writing" eval '! pgrep -f -- "chexnet-dicom --results $scratch/tmp2"'
check "reports were being written, and are not any more ($(reports))" [ "$(reports)" -lt 30 ]
check "pictures and the request stayed" [ -n "$(ls tmp2)" ]
check "the next command writes all" env TMPDIR="$scratch/tmp2" "$program" predict run many --dicom-sr killed --out killed.csv
check "and nothing else is left" eval '[ "$(reports)" = 30 ] && [ ! -e killed/unfinished ] && [ -z "$(ls tmp2)" ]'
finish
