"""What predict and its heat maps write, held against what evaluate writes and against the pictures that went in.
usage: predict_checks.py FUNCTION ARGUMENTS..."""
import collections
import csv
import json
import math
import os
import random
import struct
import sys
import zlib


def scores_of_evaluate():
    truth = {r['image']: r for r in csv.DictReader(open('evaluate.csv'))}
    rows = list(csv.DictReader(open(sys.argv[1], newline='')))
    paths = [sys.argv[2] + line.strip() for line in open('list.txt')]
    assert [r['image'] for r in rows] == paths, ([r['image'] for r in rows][:3], paths[:3])
    columns = [c for c in rows[0] if c.startswith('prob:')]
    assert len(columns) == 14 and list(rows[0]) == ['image'] + columns + ['error', 'note']
    for row in rows:
        assert row['error'] == row['note'] == '' and all(row[c] and row[c] == truth[os.path.basename(row['image'])][c] for c in columns), row


def pack_scores():
    truth = {os.path.basename(r['image']): list(r.values())[1:] for r in csv.DictReader(open('folder.csv'))}
    rows = {os.path.basename(r['image']): list(r.values())[1:] for r in csv.DictReader(open('pack.csv'))}
    assert truth and all(rows[name] == values for name, values in truth.items())


def odd_rows():
    a, b, _, c, d = sys.argv[1:]
    truth = {r['image']: r for r in csv.DictReader(open('folder.csv'))}
    rows = list(csv.DictReader(open('odd.csv', newline='')))
    lines = [json.loads(line) for line in open('odd.json')]
    names = ['odd/nothing.png', 'odd/a,"b"\nc.png', 'odd/cut.png', 'odd/empty.jpg', 'odd/page.png', 'odd/sound.png', 'odd/x/1.png', 'odd/y/1.png']
    assert [r['image'] for r in rows] == names == [l['image'] for l in lines[:-1]], rows
    wrong = {'odd/nothing.png': 'No such file', 'odd/cut.png': 'the file is cut off', 'odd/empty.jpg': 'the file is empty', 'odd/page.png': 'neither PNG nor JPEG'}
    same = {names[1]: a, 'odd/sound.png': b, 'odd/x/1.png': c, 'odd/y/1.png': d}
    columns = [k for k in rows[0] if k.startswith('prob:')]
    for row, line in zip(rows, lines):
        name = row['image']
        if name in wrong:
            assert wrong[name] in row['error'] and row['error'] == line['error'] and not any(row[k] for k in columns), row
            assert 'probabilities' not in line
        else:
            assert [row[k] for k in columns] == [truth[same[name]][k] for k in columns] and not row['error'], row
            assert [float(row[k]) for k in columns] == [line['probabilities'][k[5:]] for k in columns] and 'error' not in line
    end = lines[-1]
    assert (end['images'], end['scored'], end['errors'], end['left_out']) == (8, 4, 4, 1) and end['images_per_s'] > 0, end


def damaged_archives():
    truth = {r['image']: r for r in csv.DictReader(open('folder.csv'))}
    rows = list(csv.DictReader(open('broken.csv')))
    lines = [json.loads(line) for line in open('broken.json')]
    assert [r['image'] for r in rows] == [l['image'] for l in lines[:-1]]
    probs = [k for k in rows[0] if k.startswith('prob:')]
    errors = {r['image']: r['error'] for r in rows if r['error']}
    assert list(errors) == ['broken/b.tar', 'broken/c.tgz', 'broken/d.tar', 'broken/e.pack'], errors
    assert 'is cut off' in errors['broken/b.tar'] and 'cut off' in errors['broken/c.tgz'] and 'damaged tar header at byte 0' in errors['broken/d.tar'], errors
    for archive in ('broken/b.tar', 'broken/c.tgz'):
        at = [r['image'] for r in rows].index(archive)
        members = [r for r in rows if r['image'].startswith(archive + '/')]
        assert 3 < len(members) < len(truth) and members == rows[at - len(members):at], (archive, len(members))
        for r in members:
            assert [r[k] for k in probs] == [truth[r['image'][len(archive) + 1:]][k] for k in probs], r
    assert rows[-1]['image'] == 'broken/z.png' and not rows[-1]['error']
    assert lines[-1]['errors'] == 4 and lines[-1]['scored'] == len(rows) - 4, lines[-1]


def draw_pictures():
    def png(name, width, height, color, pixel):  # color: as PNG's header says it
        chunk = lambda kind, body: struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
        lines = b''.join(b'\0' + b''.join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
        with open('hardly/' + name, 'wb') as file:
            file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, color, 0, 0, 0)) +
                       chunk(b'IDAT', zlib.compress(lines)) + chunk(b'IEND', b''))
    os.mkdir('hardly'); random.seed(1)
    gray = lambda x, y: (x * 5 + y * 3) % 256
    png('black.png', 64, 64, 0, lambda x, y: [0])
    png('colors.png', 64, 64, 2, lambda x, y: [random.randrange(256) for _ in range(3)])
    png('gray_as_rgb.png', 64, 64, 2, lambda x, y: [gray(x, y)] * 3)
    png('mark.png', 64, 64, 2, lambda x, y: [255, 0, 0] if x < 5 and y < 5 else [gray(x, y)] * 3)
    png('nearly_black.png', 64, 64, 0, lambda x, y: [random.randrange(3)])
    png('small.png', 15, 15, 0, lambda x, y: [gray(x * 4, y * 4)])
    png('strip.png', 2000, 20, 0, lambda x, y: [gray(x, y)])


def notes():
    rows = list(csv.DictReader(open('hardly.csv')))
    lines = [json.loads(line) for line in open('hardly.json')]
    wanted = {'black': 'of one gray', 'colors': 'in color', 'gray_as_rgb': '', 'mark': '', 'nearly_black': 'of one gray',
              'small': '15 x 15 pixels, enlarged more than twice', 'strip': 'a strip of 2000 x 20 pixels'}
    assert {r['image'][7:-4]: r['note'] for r in rows} == wanted, rows
    assert {l['image'][7:-4]: l.get('note', '') for l in lines[:-1]} == wanted and lines[-1]['notes'] == 5, lines
    assert all(r['prob:Mass'] and not r['error'] for r in rows)


def wild_files():
    lines = [json.loads(line) for line in open('wild.json')]
    files = sorted(f for f in os.listdir(sys.argv[1]) if f != 'FILES.csv')
    assert [os.path.basename(l['image']) for l in lines[:-1]] == files and len(files) == 18, files
    for line in lines[:-1]:
        if line['image'].endswith('.dcm') and sys.argv[2] == 'without':
            assert 'DICOM' in line['error'], line
        else:
            assert len(line['probabilities']) == 14, line


def derived_files():
    for line in [json.loads(l) for l in open('derived.json')][:-1]:
        name = os.path.basename(line['image'])
        if name.startswith(('truncated_', 'badcrc_', 'empty', 'html', 'webp_')):
            assert name in line['error'], line
        else:
            assert len(line['probabilities']) == 14, line


def dicom_rows():
    rows, pictures = (list(csv.DictReader(open(f))) for f in ('dicom.csv', 'pictures.csv'))
    values = lambda r: [v for k, v in r.items() if k.startswith('prob:')]
    good = [r for r in rows if not r['error']]
    assert len(rows) == 3 and len(good) == 2 and sorted(map(values, good)) == sorted(map(values, pictures)), rows
    bad, = (r for r in rows if r['error'])
    assert bad['image'] == 'dicom/cut.dcm' and '[dicom]' in bad['error'], bad


def maps():
    rows = list(csv.DictReader(open('maps/heatmaps.csv')))
    scores = {r['image']: r for r in csv.DictReader(open('p.csv'))}
    good = [i for i, r in scores.items() if not r['error']]
    assert len(good) == 4 and len(rows) == 8, rows
    assert sorted(r['file'] for r in rows) == sorted(f for f in os.listdir('maps') if f.endswith('.png'))
    for r in rows:
        assert r['probability'] == scores[r['image']]['prob:' + r['finding']], r
        head = open('maps/' + r['file'], 'rb').read(26)
        width, height, depth, color = struct.unpack('>IIBB', head[16:26])
        assert (width, depth, color) == (64, 8, 2) and 64 < height < 130, (width, height)
    for line in [json.loads(l) for l in open('p.json')][:-1]:
        assert line.get('heat_maps', {}) == {r['finding']: r['file'] for r in rows if r['image'] == line['image']}, line


def maps_by_threshold():
    above = {(r['image'], c[5:]) for r in csv.DictReader(open('p.csv')) for c, v in r.items()
             if c.startswith('prob:') and v and float(v) >= 0.5}
    assert {(r['image'], r['finding']) for r in csv.DictReader(open('above/heatmaps.csv'))} == above


def boxes():
    test = set(open(sys.argv[1] + '/test_list.txt').read().split())
    rows = list(csv.reader(open(sys.argv[1] + '/BBox_List_2017.csv')))[1:]
    cases = collections.Counter(f.replace('Infiltrate', 'Infiltration') for i, f in {(r[0], r[1]) for r in rows} if i in test)
    found = json.load(open('boxes.json'))['localization']
    assert {f: v['cases'] for f, v in found['findings'].items()} == dict(cases), found
    assert found['cases'] == sum(cases.values()) and found['damaged'] == found['outside'] == found['cut_boxes'] == 0
    assert found['other_images'] == len({r[0] for r in rows} - test)
    for f in found['findings'].values():
        shares = [f['iou_at'][t]['value'] for t in sorted(f['iou_at'])]
        assert len(shares) == 7 and shares == sorted(shares, reverse=True) and 0 <= f['pointing']['value'] <= 1


def odd_boxes():
    found = json.load(open('odd.json'))['localization']
    assert found['findings']['Mass']['pointing']['value'] == 1 and found['cases'] == 1, found
    assert (found['outside'], found['cut_boxes'], found['unknown_findings']) == (1, 2, ['Cyst']), found


def features():
    plain, lines = ([json.loads(line) for line in open(name)][:-1] for name in sys.argv[1:3])
    with open(sys.argv[3], 'rb') as file:
        head = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        begin = file.tell()

        def numbers(name):
            first, end = head[name]['data_offsets']
            file.seek(begin + first)
            return struct.unpack(f'<{(end - first) // 4}f', file.read(end - first))
        weights, biases = numbers('classifier.weight'), numbers('classifier.bias')
    assert len(plain) == len(lines) > 10 and len({tuple(line['features']) for line in lines}) == len(lines)
    for before, line in zip(plain, lines):
        assert before['image'] == line['image'] and 'features' not in before and len(line['features']) == 1024
        for k, (finding, probability) in enumerate(line['probabilities'].items()):
            logit = sum(w * f for w, f in zip(weights[1024 * k:1024 * k + 1024], line['features'])) + biases[k]
            assert abs(1 / (1 + math.exp(-logit)) - probability) < 1e-5 > abs(before['probabilities'][finding] - probability), (finding, logit, probability)


globals()[sys.argv.pop(1)]()
