"""DICOM files that chexnet-dicom and predict are given, and looks at what they make of them, in the current folder.
usage: dicom_checks.py FUNCTION ARGUMENTS..."""
import csv
import glob
import json
import math
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import zlib

sys.path.append(str(pathlib.Path(__file__).parents[1] / 'support'))
from dicom import GRADIENT, element, picture, read, sequence

RAMP = [i * 273 for i in range(16)]  # 0 .. 4095
BYTES = [i * 17 for i in range(16)]
MIXED = [i * 1361 % 4096 for i in range(16)]


def write(name, pixels=RAMP, bits=12, patient='Doe^Jane 17', folder='in', side=4, **more):
    os.makedirs(folder, exist_ok=True)
    values = {'x00100020': ('LO', patient), 'x00100040': ('CS', 'F'), 'x00101010': ('AS', '018M'),
              'instance': '1.2.3.' + str(sum(name.encode()))} | more
    with open(f'{folder}/{name}', 'wb') as file:
        file.write(picture(pixels, side, bits, **values))


def window(center, width, **more):
    return {'x00281050': ('DS', center), 'x00281051': ('DS', width)} | more


def table(first, bits, values, vr='US'):
    return sequence((0x28, 0x3002, vr, struct.pack('<HhH', len(values) if bits > 8 else 256, first, bits)),
                    (0x28, 0x3006, 'OW', bytes(values) if bits == 8 else struct.pack(f'<{len(values)}H', *values)))


def displays():
    """A file for each step of the display pipeline, in the order of displayed(), and for each reason to skip one."""
    rising, falling = [1000 + i * 2000 // 4095 for i in range(4096)], [(255 - i) * 4 for i in range(256)]
    narrow = window('0.5', '0.4', x00281052=('DS', '0'), x00281053=('DS', '0.000244140625'))
    write('a_full_range.dcm')
    write('b_mono1.dcm', x00280004=('CS', 'MONOCHROME1'))
    write('c_window.dcm', **window('2048', '1024'))
    write('d_rescale.dcm', **window('3000\\1', '4000\\1', x00281052=('DS', '-1024'), x00281053=('DS', '2')))
    write('e_inverse.dcm', BYTES, 8, x20500020=('CS', 'INVERSE'))
    write('f_identity_mono1.dcm', BYTES, 8, x00280004=('CS', 'MONOCHROME1'), x20500020=('CS', 'IDENTITY'))
    write('g_signed.dcm', [i * 200 - 1600 for i in range(16)], 16, sign=1, **window('0', '2001'))
    write('h_voi_lut.dcm', BYTES, 8, x00283010=table(0, 10, falling))
    write('i_sigmoid.dcm', **window('2048', '1000', x00281056=('CS', 'SIGMOID')))
    write('j_signed_lut.dcm', [i - 128 for i in BYTES], 16, sign=1, x00283010=table(-128, 10, falling, 'SS'))
    write('k_high_bit.dcm', [x << 4 for x in MIXED], x00280102=('US', 15))
    write('l_lut_below_zero.dcm', [i + 1024 - 128 for i in BYTES], x00281052=('DS', '-1024'), x00281053=('DS', '1'),
          x00283010=table(-128, 10, falling, 'SS'))
    write('m_lut_of_bytes.dcm', BYTES, 8, x00283010=table(0, 8, range(255, -1, -1)))
    write('n_scaled_bytes.dcm', BYTES, 8, x00281052=('DS', '-1024'), x00281053=('DS', '16'))
    write('o_signed_bytes.dcm', [i - 128 & 255 for i in BYTES], 8, sign=1)
    write('p_lut_cut.dcm', BYTES, 8, x00283010=table(0, 8, range(255, 55, -1)))
    write('q_padding.dcm', [-2000, -1900] + RAMP[1:14] + [-1800], 16, sign=1,
          x00280120=('SS', struct.pack('<h', -2000)), x00280121=('SS', struct.pack('<h', -1700)))
    write('qq_all_padding.dcm', [7] * 16, x00280120=('US', 7))
    write('r_few_bits.dcm', range(16), 4, cell=16)
    write('r_narrow_exact.dcm', **narrow, x00281056=('CS', 'LINEAR_EXACT'))
    write('r_narrow_sigmoid.dcm', **narrow, x00281056=('CS', 'SIGMOID'))
    write('r_part_of_lut.dcm', x00283010=table(0, 12, rising))
    write('ra_frontal_view.dcm', x00185101=('CS', 'pa'), x00540220=coded('R-1', 'postero-anterior'))
    write('rb_lying.dcm', x00540220=coded('R-1', 'left lateral decubitus'))
    write('s_lateral.dcm', x00185101=('CS', 'LL'))
    write('s_small_letters.dcm', x00185101=('CS', 'll'))
    write('s_view_name.dcm', x00540220=coded('R-1', 'Left lateral'))
    write('s_view_number.dcm', x00540220=coded('399198007', 'seitlich'))
    write('t_frames.dcm', RAMP * 3, x00280008=('IS', '3'))
    write('u_burned.dcm', x00280301=('CS', 'YES'))
    write('v_other_patient.dcm', patient='Roe^Richard')
    write('64.dcm', [(x * 37 + y * 91 + x * y) % 4096 for y in range(64) for x in range(64)], side=64, folder='raw')
    write('x_beyond.dcm', x00281053=('DS', '1e308'))
    pathlib.Path('in/notes.txt').write_text('not a picture')
    pathlib.Path('in/w_cut.dcm').write_bytes(whole()[:-20])


def coded(code, meaning):
    return sequence((8, 0x0100, 'SH', code), (8, 0x0104, 'LO', meaning))


def whole():
    return pathlib.Path('in/a_full_range.dcm').read_bytes()


def png(path):
    """The values of a gray PNG of 8 bits."""
    b, at, data = pathlib.Path(path).read_bytes(), 8, b''
    while at < len(b):
        n, kind = struct.unpack('>I4s', b[at:at + 8])
        if kind == b'IHDR':
            w, h = struct.unpack('>II', b[at + 8:at + 16])
        if kind == b'IDAT':
            data += b[at + 8:at + 8 + n]
        at += 12 + n
    raw, rows = zlib.decompress(data), []
    for y in range(h):
        f, line = raw[y * (w + 1)], bytearray(raw[y * (w + 1) + 1:(y + 1) * (w + 1)])
        for x in range(w):
            a = line[x - 1] if x else 0
            u = rows[-1][x] if rows else 0
            c = rows[-1][x - 1] if rows and x else 0
            nearest = min((a, u, c), key=lambda value: abs(a + u - c - value))  # Paeth's, the first of equals
            line[x] = (line[x] + (0, a, u, (a + u) // 2, nearest)[f]) & 255
        rows.append(line)
    return [v for r in rows for v in r]


def displayed():
    half_up = lambda x: math.floor(x + 0.5)
    clip = lambda x: min(max(x, 0.0), 1.0)
    linear = lambda x, c, w: clip((x - (c - 0.5)) / (w - 1) + 0.5)
    sigmoid = lambda x, c, w: 1 / (1 + math.exp(-4 * (x - c) / w))
    shares = [x / 4095 for x in RAMP]
    falling = [(255 - i) * 4 / 1023 for i in BYTES]
    as_they_are, inverse = [i / 255 for i in BYTES], [1 - i / 255 for i in BYTES]
    wanted = [
        shares,
        [1 - x for x in shares],
        [linear(x, 2048, 1024) for x in RAMP],
        [linear(2 * x - 1024, 3000, 4000) for x in RAMP],
        inverse,
        as_they_are,
        [linear(i * 200 - 1600, 0, 2001) for i in range(16)],
        falling,
        [sigmoid(x, 2048, 1000) for x in RAMP],
        falling,
        [(x - min(MIXED)) / (max(MIXED) - min(MIXED)) for x in MIXED],
        falling,
        inverse,
        as_they_are,
        as_they_are,
        [0, 0] + [(i - 1) / 12 for i in range(1, 14)] + [0],
        [0] * 16,
        as_they_are,
        [clip((x / 4096 - 0.5) / 0.4 + 0.5) for x in RAMP],
        [sigmoid(x / 4096, 0.5, 0.4) for x in RAMP],
        [(1000 + x * 2000 // 4095) / 4095 for x in RAMP],
        shares,
        shares,
    ]
    for i, values in enumerate(wanted):
        got, values = png(f'plain/images/Doe_Jane_17-7b45d0ed_{i:03d}.png'), [half_up(255 * value) for value in values]
        assert got == values, ('picture', i, got, 'wanted', values)
    report = json.load(open('plain/conversion.json'))
    assert report['skipped'] == {'burned_in_annotation': 1, 'lateral': 4, 'multi_frame': 1, 'not_dicom': 1}, report
    reasons = 'p_lut_cut.dcm: has a lookup table', 'w_cut.dcm', 'x_beyond.dcm: its rescaling'
    for said, reason in zip(report['damaged'], reasons, strict=True):
        assert reason in said, said
    assert 'window 2048.000 / 1024.000 LINEAR' in report['rules'][2]['rule'], report['rules']
    assert ',1,F' in open('plain/images.csv').read()  # 18 months are 1 year


def cut_pixels():
    """Cut off by how many bytes, of which the last eight are the mark after the fragments, which a file may lack. And
    of a last fragment of the right length the end, which decoders invent."""
    os.mkdir('short')
    os.mkdir('ended')
    for form in ('jpegls', 'j2k', 'jpeg', 'rle'):
        b = pathlib.Path(f'coded/{form}.dcm').read_bytes()
        for n in (9, 20, 30, 600):
            pathlib.Path(f'short/{form}_{n:03d}.dcm').write_bytes(b[:-n])
        pathlib.Path(f'ended/{form}.dcm').write_bytes(b[:-8])
        at = b.rindex(b'\xe0\x7f\x10\x00OB\0\0\xff\xff\xff\xff') + 12
        while True:
            n = struct.unpack('<I', b[at + 4:at + 8])[0]
            if b[at + 8 + n:at + 12 + n] != b'\xfe\xff\x00\xe0':
                break
            at += 8 + n
        part = b[at + 8:at + 8 + n - 40] + (b'' if form == 'rle' else b'\xff\xd9')
        pathlib.Path(f'short/{form}_inside.dcm').write_bytes(
            b[:at + 4] + struct.pack('<I', len(part)) + part + b[at + 8 + n:])


def parts_of_bodies():
    def shows(name, modality='DX', part='', **more):
        values = {'x00080060': ('CS', modality), 'x00180015': ('CS', part)} | more
        write(name + '.dcm', folder='parts', patient=name, **values)
    capture, ct = ('UI', '1.2.840.10008.5.1.4.1.1.7'), ('UI', '1.2.840.10008.5.1.4.1.1.2')
    shows('chest', 'CR', 'CHEST')
    shows('small_letters', part='Port chest')
    shows('thorax', part='THORAX')
    shows('blank', part='  ')
    shows('coded', x00082218=coded('51185008', 'Brustkorb'))
    shows('named', x00082218=coded('1', 'Lung'))
    shows('capture', 'OT', 'CHEST', x00080016=capture)
    shows('digitized', 'SC')
    shows('no_modality', '')
    shows('no_ct', 'CT', 'CHEST')
    shows('no_class', '', x00080016=ct)
    shows('no_breast', 'MG')
    shows('no_other', 'OT')
    shows('no_captured_ct', 'CT', x00080016=capture)
    shows('no_fluoroscopy', 'RF', 'CHEST')
    shows('no_tibia', 'CR', 'EXTREMITY')
    shows('no_abdomen', part='CHESTABDOMEN')
    shows('no_spine', part='THORAXSPINE')
    shows('no_coded_hand', x00082218=coded('85562004', 'Hand'))


def patients():
    """Attributes of patients, and ids of all kinds."""
    said = lambda name, **more: write(name, folder='said', **more)
    said('a.dcm', x00100040=('CS', 'Jane Doe'), x00185101=('CS', 'DOE JANE'), x00101010=('AS', '097Y'))
    said('b.dcm', x00100040=('CS', 'O'), x00185101=('CS', 'ap'), x00101010=('AS', '089Y'))
    said('c.dcm', **window('2048', '1024', x00101010=('AS', 'Doe'), x00281056=('CS', 'DOE JANE')))
    for i, patient in enumerate((b'\x81\x5c1', b'\x81\x5c2')):
        write(f'{i}.dcm', folder='two_bytes', patient=patient, x00080005=('CS', 'GB18030'))
    for i in range(3):
        write(f'{i}.dcm', folder='studies', patient='', x00080018=('UI', f'1.2.{i}'), x0020000d=('UI', f'1.3.{i // 2}'))
        write(f'{i}.dcm', folder='nobody', patient='', x00080018=('UI', ''))
    for i, patient in enumerate(('A/1', 'A 1', 'A_1', 'X' * 400)):
        write(f'{i}.dcm', folder='ids', patient=patient)
    pathlib.Path(os.fsdecode(b'ids/m\xfcller.dcm')).write_bytes(whole()[:-20])
    for i in range(12):
        write(f'{i:02d}.dcm', folder='order', patient=f'{i // 2}')


def lies():
    """A value that says it has 1.3 GB, in files of some hundred bytes: among the attributes, after the pixels, and as the
    pixels themselves."""
    long = lambda g, e, vr: struct.pack('<HH', g, e) + vr + b'\0\0' + struct.pack('<I', 0x4f4c0020)
    sound = whole()
    at, pixels = (sound.index(struct.pack('<HH', *tag)) for tag in ((0x28, 2), (0x7fe0, 0x10)))
    os.mkdir('lies')
    for name, data in (('a_attribute', sound[:at] + long(0x27, 0x10, b'OB') + sound[at:]),
                       ('b_behind', sound + long(0xfffc, 0xfffc, b'OB') + bytes(16)),
                       ('c_pixels', sound[:pixels] + long(0x7fe0, 0x10, b'OW') + bytes(32)), ('d_sound', sound)):
        pathlib.Path(f'lies/{name}.dcm').write_bytes(data)


def most_kb():
    """Runs a command; the most memory that it took."""
    subprocess.run(sys.argv[1:], stdout=open('json', 'w'), stderr=open('err', 'w'))
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def real_means():
    means = sorted(sum(p) / len(p) for p in (png(f) for f in glob.glob('real/images/*.png')))
    assert len(means) == 2 and abs(means[0] - (255 - 160.4)) < 0.5 and abs(means[1] - 180.06) < 0.01, means


# What predict is given, and the reports and captures that it writes.

def scored():
    def give(path, patient, study, instance='1.2.3.4', modality='DX', part=''):
        uids = {'x00080018': ('UI', instance), 'x0020000d': ('UI', study), 'x0020000e': ('UI', study + '.1')}
        values = {'x00080005': ('CS', 'ISO_IR 192'), 'x00080020': ('DA', '20260102'), 'x00080050': ('SH', 'ACC-7'),
                  'x00080060': ('CS', modality), 'x00180015': ('CS', part), 'x00100010': ('PN', patient),
                  'x00100020': ('LO', 'id 7'), 'x00101010': ('AS', '62')} | (uids if instance else {'x00080018': None})
        os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
        pathlib.Path(path).write_bytes(picture(GRADIENT, **values))
    give('in/a.dcm', 'Müller^Zoë', '1.2.840.1.7')
    give('in/b.dcm', 'Müller^Zoë', '1.2.840.1.7', '1.2.3.5')
    give('in/c.dcm', 'Nobody', '', instance='')
    give('in/e.dcm', 'Nobody', '', instance='not a uid')
    pathlib.Path('in/d.dcm').write_bytes(pathlib.Path('in/a.dcm').read_bytes()[:900])
    give('parts/ct.dcm', 'A^B', '1.2.840.1.9', '1.2.4.1', modality='CT', part='ABDOMEN')
    give('parts/tibia.dcm', 'A^B', '1.2.840.1.9', '1.2.4.2', modality='CR', part='EXTREMITY')
    give('parts/capture.dcm', 'A^B', '1.2.840.1.9', '1.2.4.3', modality='SC')
    give('other.dcm', 'Other', '1.2.840.9', '9.9.9')
    give('x' * 245 + '.dcm', 'A^B', '1.2.840.1.8', '1.2.3.6')


def belong_to_their_source():
    files = {f: read(f) for f in sorted(glob.glob('out/*'))}
    captures = [e for f, e in files.items() if f.endswith(('_Mass.dcm', '_Effusion.dcm'))]
    reports = [e for f, e in files.items() if not f.endswith(('_Mass.dcm', '_Effusion.dcm'))]
    text = lambda e, *tag: e[tag].rstrip(b' \0')
    for file in reports + captures:
        assert text(file, 0x10, 0x10) == 'Müller^Zoë'.encode() and text(file, 0x10, 0x20) == b'id 7'
        assert text(file, 8, 0x05) == b'ISO_IR 192'
        assert text(file, 0x20, 0x0d) == b'1.2.840.1.7' and text(file, 8, 0x50) == b'ACC-7'
        assert (0x10, 0x1010) not in file  # "62" is no age
        assert text(file, 0x20, 0x0e) != b'1.2.840.1.7.1'
    assert len({text(f, 8, 0x18) for f in reports + captures}) == 6
    assert len({text(f, 0x20, 0x0e) for f in reports}) == 1 == len({text(f, 0x20, 0x0e) for f in captures})
    assert all(text(f, 8, 0x16) == b'1.2.840.10008.5.1.4.1.1.88.22' for f in reports)
    assert all(text(f, 8, 0x16) == b'1.2.840.10008.5.1.4.1.1.7' for f in captures)
    assert all(len(f[0x7fe0, 0x10]) >= 3 * 64 * 64 for f in captures)


def numbers_of_the_table():
    row = next(r for r in csv.DictReader(open('scores.csv')) if r['image'].endswith('a.dcm'))
    dump = open('dump').read()
    for name, value in row.items():
        if name.startswith('prob:'):
            found = re.search(rf'contains NUM:\(,,"{re.escape(name[5:])}"\)="([0-9.]+)"', dump)
            assert found and abs(float(found[1]) - float(value)) < 1e-6, (name, value, found)
    assert 'Not a medical device' in dump


def requests():
    path = lambda p: p.encode().hex()

    def request(name, **image):
        findings = [{'name': n, 'probability': 0.5, 'calibrated': None, 'threshold': None, 'positive': None} for n in (
            '気胸', 'a\\b', 'Opacity of the left lung and all that is around it, which is a long name indeed')]
        image = {'file': path('other.dcm'), 'instance': '9.9.9', 'findings': findings, 'captures': [],
                 'sr': path(name + '.sr')} | image
        model = {'network': 'n', 'version': '1', 'sha256': 's', 'rule': ''}
        pathlib.Path(name).write_text(json.dumps({'request': 'r', 'model': model, 'images': [image]}))
    request('fine')
    request('swapped', instance='1.1')
    request('pipe', file=path('pipe.dcm'))


globals()[sys.argv.pop(1)]()
