#!/usr/bin/env bash
# chexnet-dicom on files written here value by value (and by gdcmconv in compressed forms where it is installed), and on
# the real ones where they are: every step of the display pipeline, what is skipped, pseudonyms.
set -u
source tests/lib.sh
converter=$CHEXNET_BUILD/chexnet-dicom
[ -x "$converter" ] || { echo "skipped: built without GDCM"; exit 77; }
cd "$scratch"
cat >make.py <<'PY'
import struct, os
os.makedirs('in', exist_ok=True); os.makedirs('raw', exist_ok=True)
def element(group, el, vr, value):
    if isinstance(value, str):
        value = value.encode()
    if len(value) % 2:
        value += b'\0' if vr in ('UI', 'OB', 'OW') else b' '
    head = struct.pack('<HH', group, el) + vr.encode()
    if vr in ('OB', 'OW', 'SQ', 'UN'):
        return head + b'\0\0' + struct.pack('<I', len(value)) + value
    return head + struct.pack('<H', len(value)) + value
us = lambda g, e, n: element(g, e, 'US', struct.pack('<H', n))
def write(name, pixels, bits=16, photometric='MONOCHROME2', patient='Doe^Jane 17', sign=0, side=4, folder='in', **more):
    uid = '1.2.3.' + str(sum(name.encode()))
    meta = element(2, 0x0002, 'UI', '1.2.840.10008.5.1.4.1.1.1') + element(2, 0x0003, 'UI', uid) + element(2, 0x0010, 'UI', '1.2.840.10008.1.2.1')
    meta = element(2, 0x0000, 'UL', struct.pack('<I', len(meta))) + meta
    allocated = more.pop('cell', 8 if bits <= 8 else 16)
    data = {(8, 0x0016): element(8, 0x0016, 'UI', '1.2.840.10008.5.1.4.1.1.1'), (8, 0x0018): element(8, 0x0018, 'UI', uid),
            (8, 0x0060): element(8, 0x0060, 'CS', 'DX'),
            (0x10, 0x20): element(0x10, 0x20, 'LO', patient), (0x10, 0x40): element(0x10, 0x40, 'CS', 'F'), (0x10, 0x1010): element(0x10, 0x1010, 'AS', '018M'),
            (0x28, 2): us(0x28, 2, 1), (0x28, 4): element(0x28, 4, 'CS', photometric), (0x28, 0x10): us(0x28, 0x10, side), (0x28, 0x11): us(0x28, 0x11, side),
            (0x28, 0x100): us(0x28, 0x100, allocated), (0x28, 0x101): us(0x28, 0x101, bits), (0x28, 0x102): us(0x28, 0x102, bits - 1), (0x28, 0x103): us(0x28, 0x103, sign)}
    for key, (vr, value) in more.items():
        g, e = int(key[1:5], 16), int(key[5:], 16)
        data[(g, e)] = element(g, e, vr, value)
    frames = int(more.get('x00280008', ('IS', '1'))[1])
    body = struct.pack(f'<{side * side}' + ('B' if allocated == 8 else 'h' if sign else 'H'), *pixels) * frames
    data[(0x7fe0, 0x10)] = element(0x7fe0, 0x10, 'OB' if allocated == 8 else 'OW', body)
    with open(folder + '/' + name, 'wb') as f:
        f.write(b'\0' * 128 + b'DICM' + meta + b''.join(data[k] for k in sorted(data)))
ramp = [i * 273 for i in range(16)]  # 0 .. 4095
write('a_full_range.dcm', ramp, 12)
write('b_mono1.dcm', ramp, 12, 'MONOCHROME1')
write('c_window.dcm', ramp, 12, x00281050=('DS', '2048'), x00281051=('DS', '1024'))
write('d_rescale.dcm', ramp, 12, x00281052=('DS', '-1024'), x00281053=('DS', '2'), x00281050=('DS', '3000\\1'), x00281051=('DS', '4000\\1'))
write('e_inverse.dcm', [i * 17 for i in range(16)], 8, x20500020=('CS', 'INVERSE'))
write('f_identity_mono1.dcm', [i * 17 for i in range(16)], 8, 'MONOCHROME1', x20500020=('CS', 'IDENTITY'))
write('g_signed.dcm', [i * 200 - 1600 for i in range(16)], 16, sign=1, x00281050=('DS', '0'), x00281051=('DS', '2001'))
lut = struct.pack('<256H', *[(255 - i) * 4 for i in range(256)])
item = element(0x28, 0x3002, 'US', struct.pack('<3H', 256, 0, 10)) + element(0x28, 0x3006, 'OW', lut)
write('h_voi_lut.dcm', [i * 17 for i in range(16)], 8, x00283010=('SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item))
write('i_sigmoid.dcm', ramp, 12, x00281050=('DS', '2048'), x00281051=('DS', '1000'), x00281056=('CS', 'SIGMOID'))
item = element(0x28, 0x3002, 'SS', struct.pack('<HhH', 256, -128, 10)) + element(0x28, 0x3006, 'OW', lut)
write('j_signed_lut.dcm', [i * 17 - 128 for i in range(16)], 16, sign=1, x00283010=('SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item))
above = [i * 1361 % 4096 for i in range(16)]
write('k_high_bit.dcm', [x << 4 for x in above], 12, x00280102=('US', struct.pack('<H', 15)))
write('l_lut_below_zero.dcm', [i * 17 + 1024 - 128 for i in range(16)], 12, x00281052=('DS', '-1024'), x00281053=('DS', '1'),
      x00283010=('SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item))
def bytes_lut(count):
    item = element(0x28, 0x3002, 'US', struct.pack('<3H', 256, 0, 8)) + element(0x28, 0x3006, 'OW', bytes(255 - i for i in range(count)))
    return 'SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item
write('m_lut_of_bytes.dcm', [i * 17 for i in range(16)], 8, x00283010=bytes_lut(256))
write('n_scaled_bytes.dcm', [i * 17 for i in range(16)], 8, x00281052=('DS', '-1024'), x00281053=('DS', '16'))
write('o_signed_bytes.dcm', [i * 17 - 128 & 255 for i in range(16)], 8, sign=1)
write('p_lut_cut.dcm', [i * 17 for i in range(16)], 8, x00283010=bytes_lut(200))
padded = [-2000, -1900] + [i * 273 for i in range(1, 14)] + [-1800]
write('q_padding.dcm', padded, 16, sign=1, x00280120=('SS', struct.pack('<h', -2000)), x00280121=('SS', struct.pack('<h', -1700)))
write('qq_all_padding.dcm', [7] * 16, 12, x00280120=('US', struct.pack('<H', 7)))
write('r_few_bits.dcm', list(range(16)), 4, cell=16)
write('r_narrow_exact.dcm', ramp, 12, x00281052=('DS', '0'), x00281053=('DS', '0.000244140625'), x00281050=('DS', '0.5'), x00281051=('DS', '0.4'), x00281056=('CS', 'LINEAR_EXACT'))
write('r_narrow_sigmoid.dcm', ramp, 12, x00281052=('DS', '0'), x00281053=('DS', '0.000244140625'), x00281050=('DS', '0.5'), x00281051=('DS', '0.4'), x00281056=('CS', 'SIGMOID'))
item12 = element(0x28, 0x3002, 'US', struct.pack('<3H', 4096, 0, 12)) + element(0x28, 0x3006, 'OW', struct.pack('<4096H', *[1000 + i * 2000 // 4095 for i in range(4096)]))
write('r_part_of_lut.dcm', ramp, 12, x00283010=('SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item12)) + item12))
def view(meaning, value='R-1'):
    item = element(8, 0x0100, 'SH', value) + element(8, 0x0104, 'LO', meaning)
    return 'SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item
write('ra_frontal_view.dcm', ramp, 12, x00185101=('CS', 'pa'), x00540220=view('postero-anterior'))
write('rb_lying.dcm', ramp, 12, x00540220=view('left lateral decubitus'))
write('s_lateral.dcm', ramp, 12, x00185101=('CS', 'LL'))
write('s_small_letters.dcm', ramp, 12, x00185101=('CS', 'll'))
write('s_view_name.dcm', ramp, 12, x00540220=view('Left lateral'))
write('s_view_number.dcm', ramp, 12, x00540220=view('seitlich', '399198007'))
write('t_frames.dcm', ramp, 12, x00280008=('IS', '3'))
write('u_burned.dcm', ramp, 12, x00280301=('CS', 'YES'))
write('v_other_patient.dcm', ramp, 12, patient='Roe^Richard')
write('64.dcm', [(x * 37 + y * 91 + x * y) % 4096 for y in range(64) for x in range(64)], 12, side=64, folder='raw')
write('x_beyond.dcm', ramp, 12, x00281053=('DS', '1e308'))
open('in/notes.txt', 'w').write('not a picture')
whole = open('in/a_full_range.dcm', 'rb').read()
open('in/w_cut.dcm', 'wb').write(whole[:-20])
PY
python3 make.py
"$converter" in --out plain --ids keep --json >json 2>err; rc=$?
check "converts" [ $rc = 0 ]
cat >look.py <<'PY'
import json, math, struct, sys, zlib
def png(path):
    b = open(path, 'rb').read(); at, data = 8, b''
    while at < len(b):
        n, kind = struct.unpack('>I4s', b[at:at + 8])
        if kind == b'IHDR': w, h = struct.unpack('>II', b[at + 8:at + 16])
        if kind == b'IDAT': data += b[at + 8:at + 8 + n]
        at += 12 + n
    raw, rows = zlib.decompress(data), []
    for y in range(h):
        f, line = raw[y * (w + 1)], bytearray(raw[y * (w + 1) + 1:(y + 1) * (w + 1)])
        for x in range(w):
            a = line[x - 1] if x else 0; u = rows[-1][x] if rows else 0; c = rows[-1][x - 1] if rows and x else 0
            p = a + u - c; pa, pb, pc = abs(p - a), abs(p - u), abs(p - c)
            line[x] = (line[x] + (0, a, u, (a + u) // 2, a if pa <= pb and pa <= pc else u if pb <= pc else c)[f]) & 255
        rows.append(line)
    return [v for r in rows for v in r]
half_up = lambda x: math.floor(x + 0.5)
clip = lambda x: min(max(x, 0.0), 1.0)
ramp = [i * 273 for i in range(16)]
linear = lambda x, c, w: clip((x - (c - 0.5)) / (w - 1) + 0.5)
lut10 = [half_up(255 * (255 - i * 17) * 4 / 1023) for i in range(16)]
above = [i * 1361 % 4096 for i in range(16)]
wanted = [
    [half_up(255 * x / 4095) for x in ramp],
    [half_up(255 * (1 - x / 4095)) for x in ramp],
    [half_up(255 * linear(x, 2048, 1024)) for x in ramp],
    [half_up(255 * linear(2 * x - 1024, 3000, 4000)) for x in ramp],
    [255 - i * 17 for i in range(16)],
    [i * 17 for i in range(16)],
    [half_up(255 * linear(i * 200 - 1600, 0, 2001)) for i in range(16)],
    lut10,
    [half_up(255 / (1 + math.exp(-4 * (x - 2048) / 1000))) for x in ramp],
    lut10,
    [half_up(255 * (x - min(above)) / (max(above) - min(above))) for x in above],
    lut10,
    [255 - i * 17 for i in range(16)],
    [i * 17 for i in range(16)],
    [i * 17 for i in range(16)],
    [0, 0] + [half_up(255 * (i - 1) / 12) for i in range(1, 14)] + [0],
    [0] * 16,
    [i * 17 for i in range(16)],
    [half_up(255 * clip((x / 4096 - 0.5) / 0.4 + 0.5)) for x in ramp],
    [half_up(255 / (1 + math.exp(-4 * (x / 4096 - 0.5) / 0.4))) for x in ramp],
    [half_up(255 * (1000 + x * 2000 // 4095) / 4095) for x in ramp],
    [half_up(255 * x / 4095) for x in ramp],
    [half_up(255 * x / 4095) for x in ramp],
]
bad = 0
for i, values in enumerate(wanted):
    got = png(f'plain/images/Doe_Jane_17-7b45d0ed_{i:03d}.png')
    if max(abs(a - b) for a, b in zip(got, values)) > 0:
        print('picture', i, got, 'wanted', values); bad = 1
report = json.load(open('plain/conversion.json'))
if report['skipped'] != {'burned_in_annotation': 1, 'lateral': 4, 'multi_frame': 1, 'not_dicom': 1}: print(report['skipped']); bad = 1
damaged = report['damaged']
if len(damaged) != 3 or 'p_lut_cut.dcm: has a lookup table' not in damaged[0] or 'w_cut.dcm' not in damaged[1] or 'x_beyond.dcm: its rescaling' not in damaged[2]: print(damaged); bad = 1
if 'window 2048.000 / 1024.000 LINEAR' not in report['rules'][2]['rule']: print(report['rules']); bad = 1
if ',1,F' not in open('plain/images.csv').read(): print('18 months are 1 year'); bad = 1
sys.exit(bad)
PY
check "each step of the display pipeline, value by value" python3 look.py
"$converter" in --out hidden >/dev/null 2>err
check "pseudonyms by default" [ $? = 0 ]
check "no id or name in what is passed on" bash -c '! grep -rqiE "doe|roe|jane|1\.2\.3\." hidden'
check "the map has them, for its owner only" bash -c 'grep -q "Doe^Jane 17" hidden.map.csv && [ "$(stat -c %a hidden.map.csv)" = 600 ] && [ "$(stat -c %a hidden.key)" = 600 ]'
"$converter" in --out again --key-file hidden.key >/dev/null 2>&1
check "the same key gives the same pseudonyms" cmp -s hidden/images.csv again/images.csv
"$converter" in --out other >/dev/null 2>&1
check "another key gives others" bash -c '! cmp -s hidden/images.csv other/images.csv'
cat >cfg.yaml <<'YAML'
data:
  manifest: {format: csv, path: hidden/images.csv, columns: {image: image, patient: patient, age: age, sex: sex, view: view}}
YAML
if command -v gdcmconv >/dev/null; then
  mkdir coded
  for form in jpegls j2k jpeg rle; do gdcmconv --$form raw/64.dcm coded/$form.dcm || check "gdcmconv --$form" false; done
  "$converter" raw --out raw.out --ids keep >/dev/null 2>&1
  "$converter" coded --out coded.out --ids keep >/dev/null 2>&1
  for i in 0 1 2 3; do check "compressed form $i is lossless" cmp -s coded.out/images/Doe_Jane_17-7b45d0ed_00$i.png raw.out/images/Doe_Jane_17-7b45d0ed_000.png; done
  # Cut off in the pixels, by how many bytes; the last eight are the mark behind the fragments, which a file may lack. And
  # of a last fragment of the right length the end, which decoders invent.
  mkdir short ended
  cat >short.py <<'PY'
import struct
for form in ('jpegls', 'j2k', 'jpeg', 'rle'):
    b = open(f'coded/{form}.dcm', 'rb').read()
    for n in (9, 20, 30, 600):
        open(f'short/{form}_{n:03d}.dcm', 'wb').write(b[:-n])
    open(f'ended/{form}.dcm', 'wb').write(b[:-8])
    at = b.rindex(b'\xe0\x7f\x10\x00OB\0\0\xff\xff\xff\xff') + 12
    while True:
        n = struct.unpack('<I', b[at + 4:at + 8])[0]
        if b[at + 8 + n:at + 12 + n] != b'\xfe\xff\x00\xe0': break
        at += 8 + n
    part = b[at + 8:at + 8 + n - 40] + (b'' if form == 'rle' else b'\xff\xd9')
    open(f'short/{form}_inside.dcm', 'wb').write(b[:at + 4] + struct.pack('<I', len(part)) + part + b[at + 8 + n:])
PY
  python3 short.py
  "$converter" short --out short.out --ids keep --json >json 2>err; rc=$?
  check "compressed pixels that are cut off are damage" test "$rc $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "3 0 20"
  "$converter" ended --out ended.out --ids keep >/dev/null 2>&1
  for i in 0 1 2 3; do check "whole compressed pixels ($i) without a mark behind them" cmp -s ended.out/images/Doe_Jane_17-7b45d0ed_00$i.png raw.out/images/Doe_Jane_17-7b45d0ed_000.png; done
else
  echo "skipped: compressed forms (no gdcmconv)"
fi
# What says that it is no chest X-ray is not converted, unless it is asked for; what does not say it is.
cat >>make.py <<'PY'
os.makedirs('parts', exist_ok=True)
def region(code, meaning):
    item = element(8, 0x0100, 'SH', code) + element(8, 0x0104, 'LO', meaning)
    return 'SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item
def shows(name, modality='DX', part='', **more):
    write(name + '.dcm', ramp, 12, folder='parts', patient=name, x00080060=('CS', modality), x00180015=('CS', part), **more)
capture, ct = ('UI', '1.2.840.10008.5.1.4.1.1.7'), ('UI', '1.2.840.10008.5.1.4.1.1.2')
shows('chest', 'CR', 'CHEST'); shows('small_letters', part='Port chest'); shows('thorax', part='THORAX'); shows('blank', part='  ')
shows('coded', x00082218=region('51185008', 'Brustkorb')); shows('named', x00082218=region('1', 'Lung'))
shows('capture', 'OT', 'CHEST', x00080016=capture); shows('digitized', 'SC'); shows('no_modality', '')
shows('no_ct', 'CT', 'CHEST'); shows('no_class', '', x00080016=ct); shows('no_breast', 'MG'); shows('no_other', 'OT'); shows('no_captured_ct', 'CT', x00080016=capture)
shows('no_fluoroscopy', 'RF', 'CHEST')
shows('no_tibia', 'CR', 'EXTREMITY'); shows('no_abdomen', part='CHESTABDOMEN'); shows('no_spine', part='THORAXSPINE'); shows('no_coded_hand', x00082218=region('85562004', 'Hand'))
PY
python3 make.py
"$converter" parts --out parts.out --ids keep --outcomes-file parts.csv --json >json 2>err
check "only chest X-rays are converted" test "$(tail -n +2 parts.out/images.csv | sed 's/_000.*//' | sort | tr '\n' ' ')" = \
  "blank capture chest coded digitized named no_modality small_letters thorax "
check "the others are counted" grep -qF '"skipped":{"not_xray":6,"other_body_part":4}' json
for reason in "no_ct.dcm: not converted: not_xray (Modality is CT)" "no_class.dcm: not converted: not_xray (no Modality; SOPClassUID is 1.2.840.10008.5.1.4.1.1.2)" \
  "no_tibia.dcm: not converted: other_body_part (BodyPartExamined is EXTREMITY)" "no_coded_hand.dcm: not converted: other_body_part (AnatomicRegionSequence is Hand)"; do
  check "$reason" grep -qF "$reason" parts.csv
done
check "what does not say it has a note" test "$(grep -o '/[a-z_]*.dcm,.*,\(secondary capture\|no Modality\)$' parts.csv | sed 's/[/.].*,/:/; s|^/||' | sort | tr '\n' ' ')" = \
  ":no Modality :secondary capture :secondary capture "
check "whoever reads the outcomes needs no line of them" [ ! -s err ]
"$converter" parts --out any.out --ids keep --any-dicom --outcomes-file any.csv 2>/dev/null
check "--any-dicom converts all" [ "$(tail -n +2 any.out/images.csv | wc -l)" = 19 ]
check "and notes what they say" grep -q "no_tibia.dcm,.*,BodyPartExamined is EXTREMITY$" any.csv

# What is said of a patient: known codes and ages, whatever a file holds.
cat >>make.py <<'PY'
os.makedirs('said', exist_ok=True)
write('a.dcm', ramp, 12, folder='said', x00100040=('CS', 'Jane Doe'), x00185101=('CS', 'DOE JANE'), x00101010=('AS', '097Y'))
write('b.dcm', ramp, 12, folder='said', x00100040=('CS', 'O'), x00185101=('CS', 'ap'), x00101010=('AS', '089Y'))
write('c.dcm', ramp, 12, folder='said', x00101010=('AS', 'Doe'), x00281050=('DS', '2048'), x00281051=('DS', '1024'), x00281056=('CS', 'DOE JANE'))
PY
python3 make.py
"$converter" said --out said.out --ids keep >/dev/null 2>&1
check "no free text as sex, view or age; 90 is the highest age" test "$(cut -d, -f3- said.out/images.csv)" = "view,age,sex
,90,
AP,89,O
,,F"

check "nor in how the values became 8 bits" bash -c '! grep -q "DOE JANE" said.out/conversion.json'

# Names of patients and files, whatever an id holds: distinct, short enough, and JSON is UTF-8.
cat >>make.py <<'PY'
os.makedirs('ids', exist_ok=True); os.makedirs('nobody', exist_ok=True); os.makedirs('order', exist_ok=True); os.makedirs('studies', exist_ok=True); os.makedirs('two_bytes', exist_ok=True)
for i, patient in enumerate((b'\x81\x5c1', b'\x81\x5c2')): write(f'{i}.dcm', ramp, 12, folder='two_bytes', patient=patient, x00080005=('CS', 'GB18030'))
for i in range(3): write(f'{i}.dcm', ramp, 12, folder='studies', patient='', x00080018=('UI', f'1.2.{i}'), x0020000d=('UI', f'1.3.{i // 2}'))
for i, patient in enumerate(('A/1', 'A 1', 'A_1', 'X' * 400)): write(f'{i}.dcm', ramp, 12, folder='ids', patient=patient)
open(b'ids/m\xfcller.dcm', 'wb').write(whole[:-20])
for i in range(3): write(f'{i}.dcm', ramp, 12, folder='nobody', patient='', x00080018=('UI', ''))
for i in range(12): write(f'{i:02d}.dcm', ramp, 12, folder='order', patient=f'{i // 2}')
PY
python3 make.py
"$converter" ids --out $'ids\xfc.out' --ids keep --json >json 2>err; rc=$?
check "a damaged file and a folder named in another encoding" test "$rc $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "0 4 1"
check "and their JSON is UTF-8" python3 -c "import json, glob; json.load(open('json', encoding='utf-8')); json.load(open(glob.glob(b'ids*.out/conversion.json')[0], encoding='utf-8'))"
check "--ids keep: other ids, other patients; one that is a name stays as it is" test "$(tail -n +2 ids*.out/images.csv | cut -d, -f2 | sort -u | wc -l) $(grep -c '^A_1_000.png,A_1,' ids*.out/images.csv)" = "4 1"
for ids in keep pseudonym; do
  "$converter" nobody --out nobody.$ids --ids $ids >/dev/null 2>&1
  "$converter" studies --out studies.$ids --ids $ids >/dev/null 2>&1
  check "--ids $ids: without a patient's id a study is a patient" test "$(tail -n +2 studies.$ids/images.csv | cut -d, -f2 | sort | uniq -c | awk '{print $1}' | sort | tr '\n' ' ')" = "1 2 "
  "$converter" two_bytes --out two_bytes.$ids --ids $ids >/dev/null 2>&1
  check "--ids $ids: a byte of a character is no end of an id" test "$(tail -n +2 two_bytes.$ids/images.csv | cut -d, -f2 | sort -u | wc -l)" = 2
  check "--ids $ids: without any id each image is a patient of its own" test "$(tail -n +2 nobody.$ids/images.csv | cut -d, -f2 | sort -u | wc -l)" = 3
done
"$converter" order --out order.out >/dev/null 2>&1
cp -r order moved && "$converter" moved --out moved.out --key-file order.out.key >/dev/null 2>&1
check "the rows follow the pseudonyms" bash -c 'cmp -s <(tail -n +2 order.out/images.csv) <(tail -n +2 order.out/images.csv | LC_ALL=C sort)'
check "the times of the pictures do not follow the names of files" bash -c '! cmp -s <(cd order.out/images; ls -tr) <(grep order/ order.out.map.csv | sort -t, -k6 | cut -d, -f1)'
check "the same files elsewhere have the same names" cmp -s order.out/images.csv moved.out/images.csv

# A folder that cannot be read and links that lead nowhere cost nothing but themselves.
mkdir -p odd/closed; cp in/a_full_range.dcm odd/; ln -s round odd/round; ln -s /nowhere odd/gone; ln -s .. odd/up; mkfifo odd/pipe
user=(); [ "$(id -u)" != 0 ] || { chmod 711 .; mkdir -p theirs && chown 65534 theirs && user=(setpriv --reuid=65534 --regid=65534 --clear-groups); }
mkdir -p theirs; chmod 000 odd/closed
"${user[@]}" "$converter" odd --out theirs/odd.out --json >json 2>err; rc=$?
check "they are counted and the folder is named" test "$rc $(grep -c 'odd/closed: this folder cannot be read' err) $(cat json)" = \
  '0 1 {"images":1,"skipped":{"broken_link":2,"no_file":1},"damaged":1,"out":"theirs/odd.out","system_calls_filtered":true}'
check "in the map only" bash -c '! grep -q closed theirs/odd.out/conversion.json && grep -q "^unreadable folder 1,,,,,odd/closed" theirs/odd.out.map.csv'
chmod 700 odd/closed
timeout 20 "$converter" odd/pipe in/a_full_range.dcm --out pipe.out --json >json 2>err; rc=$?
check "a pipe that is named is counted at once" test "$rc $(grep -c 'odd/pipe: is a pipe' err) $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "0 1 1 1"

# Files at which GDCM ends the process (failed assertions, in builds that have them) are damaged files like others.
mkdir cut; for i in a c; do cp in/a_full_range.dcm cut/$i-whole.dcm; done
for length in 140 150 160 170 180 190 200 210 220 230 240 260 280 300 320; do head -c $length in/a_full_range.dcm >cut/b-$length.dcm; done
"$converter" cut --out cut.out --json >json 2>err; rc=$?
check "cut-off files are counted, the others converted" test "$rc $(sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json)" = "0 2 15"
check "the map says which they were" [ "$(grep -c '^damaged file [0-9]*,,,,,cut/b-' cut.out.map.csv)" = 15 ]
check "what is passed on does not" bash -c '! grep -q "b-140" cut.out/conversion.json'

# A file that takes over its reader can do nothing but read and answer: what would be the end of GDCM by a failed
# assertion asks the kernel for more. (Debian's GDCM is built with assertions.)
cc -shared -fPIC -o rogue.so "$source_folder/tests/support/rogue_parser.c" || exit 1
mkdir rogue; printf '\010\0\0\0' >rogue/a.dcm; cp in/a_full_range.dcm rogue/b.dcm; touch precious
attack() {  # attack NAME COMMAND...: of a reader that does NAME
  ROGUE=$1 LD_PRELOAD=$PWD/rogue.so "${@:2}" "$converter" rogue --out "rogue.$1" --json >json 2>err
}
counts() { sed 's/.*"images":\([0-9]*\).*"damaged":\([0-9]*\).*/\1 \2/' json; }
attack nothing
if grep -q 'its reader died: Aborted' err; then
  check "a filter of system calls is in force, or said not to be" \
    test "$(grep -c '"system_calls_filtered":true' json) $(grep -c seccomp err)" = "1 0"
  for name in socket execve fork ptrace open; do
    attack $name
    check "a reader that asks for $name ends, its file is damaged and the next one converted" \
      test "$(grep -c 'rogue/a.dcm: its reader died: Bad system call' err) $(counts)" = "1 1 1"
  done
  attack unlink
  check "a reader cannot remove a file" test "$(counts) $(ls precious)" = "1 1 precious"
  check "no reader has written a file" [ ! -e stolen ]
  if [ "$(uname -m)" = x86_64 ]; then
    rm -rf rogue.*; attack socket "$source_folder/tests/support/refuse_seccomp.py"
    check "where the kernel refuses a filter, it goes on and says so once" test \
      "$(grep -c '"system_calls_filtered":false' json) $(grep -c 'refuse a filter of system calls' err) $(counts)" = "1 1 1 1"
    check "and a reader is not ended by it" grep -q 'its reader died: Aborted' err
  fi
else
  echo "skipped: readers that are taken over (this GDCM has no assertions)"
fi

# A value that says it has 1.3 GB, in files of some hundred bytes: among the attributes, behind the pixels, and as the
# pixels themselves.
cat >>make.py <<'PY'
os.makedirs('lies', exist_ok=True)
long = lambda g, e, vr: struct.pack('<HH', g, e) + vr + b'\0\0' + struct.pack('<I', 0x4f4c0020)
at = whole.index(struct.pack('<HH', 0x28, 2)); pixels = whole.index(struct.pack('<HH', 0x7fe0, 0x10))
open('lies/a_attribute.dcm', 'wb').write(whole[:at] + long(0x27, 0x10, b'OB') + whole[at:])
open('lies/b_behind.dcm', 'wb').write(whole + long(0xfffc, 0xfffc, b'OB') + bytes(16))
open('lies/c_pixels.dcm', 'wb').write(whole[:pixels] + long(0x7fe0, 0x10, b'OW') + bytes(32))
open('lies/d_sound.dcm', 'wb').write(whole)
PY
python3 make.py
cp "$source_folder/tests/fuzz/regressions/dicom/value-of-gigabytes" lies/e_found.dcm
python3 - "$converter" <<'PY' >most_kb
import resource, subprocess, sys
subprocess.run([sys.argv[1], 'lies', '--out', 'lies.out', '--ids', 'keep', '--json'], stdout=open('json', 'w'), stderr=open('err', 'w'))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
check "values longer than their file are damage, each named with its reason, and the next file is read" test \
  "$(counts) $(grep -c 'asks for more memory than a file of [0-9]* bytes can need. Hint: is it damaged' err)" = "1 4 4"
case $(nm -D "$converter" 2>/dev/null) in
  *__asan_*) echo "skipped: memory of a reader (under a sanitizer)" ;;
  *) check "nor do they take memory ($(cat most_kb) KB)" test "$(cat most_kb)" -lt 200000 ;;
esac

mkdir late; cp in/a_full_range.dcm late/slow_one.dcm; cp in/a_full_range.dcm late/
cat >late.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
FILE* fopen64(const char* path, const char* mode) {
  while (strstr(path, "slow_one")) pause();
  return ((FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, "fopen64"))(path, mode);
}
C
gcc -shared -fPIC -o late.so late.c -ldl
LD_PRELOAD=$PWD/late.so timeout 60 "$converter" late --out late.out --max-seconds 1 --json >json 2>err; rc=$?
check "a file that takes long costs its time and no more" test "$rc $(grep -c 'takes longer than 1 s' err)" = "0 1"

# Of a conversion without a picture nothing is in the way of the next one.
"$converter" nope --out mistyped >/dev/null 2>err; rc=$?
check "a path that is not there is told so" test "$rc $(grep -c 'nope: no such file' err)" = "3 1"
check "and there is neither set nor map" test ! -e mistyped -a ! -e mistyped.map.csv
"$converter" in/a_full_range.dcm --out mistyped >/dev/null 2>&1
check "the corrected command goes through" test "$? $(ls mistyped/images | wc -l)" = "0 1"
"$converter" --out= in/a_full_range.dcm >/dev/null 2>err; rc=$?
check "a folder without a name is not the next word" test "$rc $(grep -c -- '--out: is empty' err)" = "2 1"
"$converter" --help >/dev/full 2>err; rc=$?
check "--help that cannot be written" test "$rc $(grep -c 'could not be written' err)" = "4 1"
"$converter" in/a_full_range.dcm --out unsaid --json >/dev/full 2>err; rc=$?
check "--json that cannot be written" test "$rc $(grep -c 'could not be written' err)" = "4 1"

# Key and map stay outside of what is passed on, and belong to their owner alone.
one=in/a_full_range.dcm
"$converter" $one --out slash/ >/dev/null 2>&1
check "--out with a slash at its end" test "$(stat -c %a slash.key slash.map.csv | tr '\n' ' ')" = "600 600 "
check "nothing private inside" bash -c "! find slash -name '*.key' -o -name '*.map.csv' -o -name '.*' | grep -q ."
mkdir dot && (cd dot && "$converter" ../$one --out . >/dev/null 2>&1)
check "--out ." test -e dot.key -a -e dot.map.csv -a ! -e dot/.key
mkdir inner; ln -s inner way
for where in inner/k inner/../inner/k way/k inner/sub/k; do
  "$converter" $one --out inner --key-file $where >/dev/null 2>err; rc=$?
  check "a key inside the set ($where) is refused" test "$rc $(grep -c 'is inside the set' err)" = "4 1"
  "$converter" $one --out way/ --map-file $where >/dev/null 2>err; rc=$?
  check "a map inside the set ($where) is refused" test "$rc $(grep -c 'is inside the set' err)" = "4 1"
done
"$converter" $one --out mine >/dev/null 2>&1; mv mine.map.csv kept.csv
chmod 644 mine.key; "$converter" $one --out next --key-file mine.key >/dev/null 2>err; rc=$?
check "a key that others can read is refused" test "$rc $(grep -c 'no key of this user alone' err)" = "4 1"
cp kept.csv fresh.map.csv; "$converter" $one --out fresh >/dev/null 2>err; rc=$?
check "the map of another set is not overwritten" test "$rc $(grep -c 'is there already' err) $(cmp kept.csv fresh.map.csv && echo same)" = "4 1 same"
cp $one original.dcm
for file in original.dcm kept.csv mine.key; do
  cp $file before; "$converter" original.dcm --out another --outcomes-file $file >/dev/null 2>err; rc=$?
  check "outcomes go into no file that is there ($file)" test "$rc $(grep -c 'is there already' err) $(cmp before $file && echo same)" = "4 1 same"
done
for two in "--key-file k --map-file k" "--map-file k --outcomes-file ./k" "--key-file k --outcomes-file k"; do
  "$converter" $one --out another $two >/dev/null 2>err; rc=$?
  check "two outputs in one file ($two) are refused" test "$rc $(grep -c 'would be one file' err)" = "4 1"
done
mkdir originals && cp original.dcm originals/; ln -s originals leads
for out in originals leads/ .; do
  "$converter" originals --out $out >/dev/null 2>err; rc=$?
  check "a set around its originals (--out $out) is refused" test "$rc $(grep -c 'would hold the originals' err)" = "4 1"
done
check "and nothing was made" test ! -e another -a ! -e k -a ! -e originals/images
touch taken_name; "$converter" $one --out taken_name >/dev/null 2>err; rc=$?
check "--out that is a file is told in a sentence" test "$rc $(grep -c "error: \[dicom\] taken_name: the set's folder cannot be made: .*Hint: --out names a folder" err)" = "4 1"
touch elsewhere; ln -s elsewhere planted.map.csv; "$converter" $one --out planted >/dev/null 2>err; rc=$?
check "nor is a planted link followed" test "$rc $(stat -c %s elsewhere)" = "4 0"
if [ "$(id -u)" = 0 ]; then
  chmod 711 .; mkdir common && chmod 1777 common
  setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'umask 0; for f in set.key set.map.csv; do : >common/$f.partial; done; head -c 32 /dev/urandom >common/taken.key; chmod 600 common/taken.key'
  "$converter" $one --out common/set >/dev/null 2>&1
  check "files that others made before become neither key nor map" test "$(stat -c '%u %a' common/set.key common/set.map.csv | sort -u)" = "0 600"
  "$converter" $one --out common/taken >/dev/null 2>err; rc=$?
  check "a key that somebody else made is refused" test "$rc $(grep -c 'no key of this user alone' err)" = "4 1"
else
  echo "skipped: files of another user (not root)"
fi
xray=${CHEXNET_XRAY_DIR:-$source_folder/../shared/xray}
if [ -d "$xray/odd" ]; then
  "$converter" "$xray/odd" --out real --ids keep --json >json 2>/dev/null
  cat >mean.py <<'PY'
import glob, sys
sys.argv = ['look']; exec(open('look.py').read().split('half_up')[0])
means = sorted(sum(p) / len(p) for p in (png(f) for f in glob.glob('real/images/*.png')))
print(means); sys.exit(not (len(means) == 2 and abs(means[0] - (255 - 160.4)) < 0.5 and abs(means[1] - 180.06) < 0.01))
PY
  check "the two real files: means 180.06, and 255 - 160.4 (MONOCHROME1)" python3 mean.py
fi
finish
