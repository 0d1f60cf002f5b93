"""Files made to harm who reads them: bombs, headers that lie, polyglots, names that lead elsewhere.

usage: tests/stress/hostile_corpus.py FOLDER PHANTOM [MODEL]

Writes the files below FOLDER, 250 MB of them, and the list of cases to FOLDER/cases.json. PHANTOM is a set that
`chexnet-train phantom` drew. With MODEL, a model file, it writes models that describe themselves wrongly instead. A
process of its own, as the memory that it takes would be counted for the programs that its parent starts.

A case: name; kind; command (words; {model}, {port} and {out} are filled in later); codes, the exit codes that are
right; says, what its output must hold; like, the case on sound input that it is measured against.
"""
import gzip
import json
import os
import pathlib
import shutil
import socket
import struct
import sys
import zlib

sys.path.append(str(pathlib.Path(__file__).parents[1] / 'support'))
import dicom

HEADER = ('Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,'
          'OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]')
MEGABYTE = 1 << 20


def row(name, patient):
    return f'{name},No Finding,0,{patient},50,F,PA,64,64,0.143,0.143'


# Pictures.

def chunk(kind, body, length=None):
    size = len(body) if length is None else length
    return struct.pack('>I', size) + kind + body + struct.pack('>I', zlib.crc32(kind + body))


def png(width, height, data, depth=8, color=0, interlaced=0, extra=b''):
    head = struct.pack('>IIBBBBB', width, height, depth, color, 0, 0, interlaced)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + extra + chunk(b'IDAT', data) + chunk(b'IEND', b'')


def zero_blocks(size):
    """Raw deflate blocks of zeros, whole megabytes, that refer to nothing before them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)) * (size // MEGABYTE)


def deflated_zeros(size):
    size = size // MEGABYTE * MEGABYTE
    return b'\x78\xda' + zero_blocks(size) + b'\3\0' + struct.pack('>HH', size % 65521, 1)


def gzip_zeros(size, before=b'', after=b''):
    size = size // MEGABYTE * MEGABYTE
    first, last = zlib.compressobj(9, zlib.DEFLATED, -15), zlib.compressobj(9, zlib.DEFLATED, -15)
    total = zlib.crc32(before)
    for _ in range(size // MEGABYTE):
        total = zlib.crc32(bytes(MEGABYTE), total)
    end = struct.pack('<II', zlib.crc32(after, total), len(before) + size + len(after))
    return (b'\x1f\x8b\x08\0\0\0\0\0\2\3' + first.compress(before) + first.flush(zlib.Z_FULL_FLUSH) +
            zero_blocks(size) + last.compress(after) + last.flush() + end)


def jpeg(width, height, kind=0xC0, components=1, scan=b'\x7f'):
    tables = b'\xff\xdb\0\x43\0' + b'\1' * 64
    for name in (0x00, 0x10):
        tables += b'\xff\xc4\0\x14' + bytes([name, 1]) + bytes(15) + b'\0'
    parts = b''.join(bytes([i + 1, 0x11, 0]) for i in range(components))
    frame = b'\xff' + bytes([kind]) + struct.pack('>HBHHB', 8 + 3 * components, 8, height, width, components) + parts
    last = 63 if kind == 0xC0 else 0
    picked = b''.join(bytes([i + 1, 0]) for i in range(components))
    head = b'\xff\xda' + struct.pack('>HB', 6 + 2 * components, components) + picked + bytes([0, last, 0])
    return b'\xff\xd8' + tables + frame + head + scan + b'\xff\xd9'


def pictures(good):
    """name -> (bytes, 'damaged' or 'sound')."""
    rows = zlib.compress(bytes(65 * 64))
    huge = struct.pack('>I', 0x7fffffff) + b'IDAT' + bytes(64)
    vrt = (b'<VRTDataset rasterXSize="64" rasterYSize="64"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
           b'<SourceFilename>/etc/passwd</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>')
    zip_end = b'PK\5\6' + bytes(18)
    profile = b'x\0\0' + deflated_zeros(256 * MEGABYTE)
    return {
        'png_914_MB.png': (png(30000, 30000, deflated_zeros(300 * MEGABYTE)), 'damaged'),
        'png_rows_beyond.png': (png(64, 64, deflated_zeros(512 * MEGABYTE)), 'sound'),
        'png_no_rows.png': (png(8000, 8000, zlib.compress(b'')), 'damaged'),
        'png_rgba16_no_rows.png': (png(8000, 8000, zlib.compress(b''), 16, 6), 'damaged'),
        'png_interlaced.png': (png(65535, 900, zlib.compress(b''), 8, 0, 1), 'damaged'),
        'png_narrow.png': (png(1, 16000000, zlib.compress(b'')), 'damaged'),
        'png_no_width.png': (png(0, 64, rows), 'damaged'),
        'png_chunk_of_2_GB.png': (b'\x89PNG\r\n\x1a\n' + good[8:33] + huge, 'damaged'),
        'png_profile_bomb.png': (png(64, 64, rows, extra=chunk(b'iCCP', profile)), 'sound'),
        'png_text_bomb.png': (png(64, 64, rows, extra=chunk(b'zTXt', profile)), 'sound'),
        'jpeg_65500.jpg': (jpeg(65500, 65500), 'damaged'),
        'jpeg_no_rows.jpg': (jpeg(8000, 7900, 0xC2, 3), 'damaged'),
        'jpeg_no_height.jpg': (jpeg(64, 0), 'damaged'),
        'jpeg_segments.jpg': (b'\xff\xd8' + (b'\xff\xe1\xff\xff' + bytes(65533)) * 16, 'damaged'),
        'polyglot_zip.png': (good + zip_end, 'sound'),
        'polyglot_html.png': (good + b'<script>alert(1)</script>', 'sound'),
        'polyglot_dicom.png': (good[:33] + bytes(95) + b'DICM' + bytes(64), 'damaged'),
        'polyglot_jpeg_in_png.png': (good[:8] + jpeg(64, 64), 'damaged'),
        'vrt_of_another_file.png': (vrt, 'damaged'),
        'svg_of_a_url.png': (b'<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:9/"/></svg>',
                             'damaged'),
        'mvg.png': (b'push graphic-context\nimage over 0,0 0,0 "|id"\npop graphic-context\n', 'damaged'),
        'postscript.jpg': (b'%!PS\n(/etc/passwd) (r) file\n', 'damaged'),
        'gzip_of_a_picture.png': (gzip.compress(good), 'damaged'),
        'gif_bomb.png': (b'GIF89a' + struct.pack('<HHBBB', 65535, 65535, 0xf7, 0, 0), 'damaged'),
        'tiff_bomb.png': (b'II*\0\x08\0\0\0\xff\xff' + bytes(200), 'damaged'),
    }


def special_files(folder):
    """Things under the name of a picture that are no regular files."""
    def device(name, target):
        os.symlink(target, folder / name)

    os.mkfifo(folder / 'pipe.png')
    device('endless.png', '/dev/zero')
    device('terminal.png', '/dev/tty')
    device('round.png', 'round.png')
    (folder / 'folder.png').mkdir()
    listener = socket.socket(socket.AF_UNIX)
    try:
        here = os.getcwd()
        os.chdir(folder)
        listener.bind('socket.png')
        os.chdir(here)
    finally:
        listener.close()
    with open(folder / 'hole.png', 'wb') as f:
        f.truncate(1 << 40)


# Containers.

def tar_header(name=b'a.png', size=b'00000000100\0', kind=b'0', link=b'', prefix=b''):
    head = bytearray(512)
    head[0:len(name)] = name
    head[100:108] = b'0000644\0'
    head[124:124 + len(size)] = size
    head[136:148] = b'00000000000\0'
    head[156:157] = kind
    head[157:157 + len(link)] = link
    head[257:265] = b'ustar\x0000'
    head[345:345 + len(prefix)] = prefix
    head[148:156] = b' ' * 8
    head[148:156] = b'%06o\0 ' % sum(head)
    return bytes(head)


def tar_member(name, content, kind=b'0', link=b''):
    return tar_header(name, b'%011o\0' % len(content), kind, link) + content + bytes(-len(content) % 512)


def pax(**values):
    text = b''
    for key, value in values.items():
        rest = b' ' + key.encode() + b'=' + value + b'\n'
        length = len(rest)
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        text += str(length).encode() + rest
    return tar_member(b'pax', text, b'x')


TAR_END = bytes(1024)
LEADS_ELSEWHERE = [b'../../evil.png', b'/abs/evil.png', b'a/../../../evil.png', b'..', b'.', b'a//evil.png',
                   b'new\nline.png', b'\x1b[2Jescape.png', b'tab\tname.png', b'C:\\evil.png', b'-rf.png', b'%s%n.png']


def archives(good):
    """name -> (bytes, 'damaged', 'listed': of sound members beside the hostile ones)."""
    member = tar_member(b'good.png', good)
    names = b''.join(tar_member(name, good) for name in LEADS_ELSEWHERE)
    nul = pax(path=b'x/evil\0.png') + tar_member(b'a.png', good)
    links = b''.join(tar_header(b'l%d.png' % i, b'%011o\0' % 0, kind, b'/etc/passwd')
                     for i, kind in enumerate((b'1', b'2', b'3', b'4', b'6')))
    many = b''.join(tar_header(b'%d.png' % i, b'%011o\0' % 0) for i in range(4000))
    return {
        'names.tar': (member + names + nul + TAR_END, 'listed'),
        'names.tar.gz': (gzip.compress(member + names + nul + TAR_END), 'listed'),
        'links_and_devices.tar': (member + links + TAR_END, 'listed'),
        'links_and_devices.tar.gz': (gzip.compress(member + links + TAR_END), 'listed'),
        'nothing_4000_times.tar': (member + many + TAR_END, 'listed'),
        'nothing_4000_times.tar.gz': (gzip.compress(member + many + TAR_END), 'listed'),
        'size_2_62.tar': (member + tar_header(size=b'\x80' + bytes(3) + struct.pack('>Q', 1 << 62)) + TAR_END,
                          'damaged'),
        'size_2_64.tar': (member + tar_header(size=b'\xff' * 12) + TAR_END, 'damaged'),
        'pax_size_2_63.tar': (member + pax(size=b'9223372036854775809') + tar_member(b'a.png', good) + TAR_END,
                              'damaged'),
        'long_name_of_1_GB.tar': (member + tar_header(b'L', b'%011o\0' % (1 << 30), b'L') + bytes(4096), 'damaged'),
        'sum_lies.tar': (member + tar_header()[:148] + b'0000000\0' + tar_header()[156:] + TAR_END, 'damaged'),
        'bomb_of_300_MB.tar.gz': (gzip_zeros(300 * MEGABYTE,
                                             member + tar_header(b'a.png', b'%011o\0' % (300 * MEGABYTE)), TAR_END),
                                  'listed'),
        'bomb_in_a_name.tar.gz': (gzip_zeros(300 * MEGABYTE, member + tar_header(b'L', b'%011o\0' % (300 * MEGABYTE),
                                                                                 b'L'), TAR_END), 'damaged'),
        'gzip_in_gzip.tar.gz': (gzip.compress(gzip.compress(member + TAR_END)), 'damaged'),
    }


def crc32c_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc32c_table()


def masked_crc32c(data):
    value = 0xffffffff
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    value ^= 0xffffffff
    return ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff


def record(data, length=None):
    head = struct.pack('<Q', len(data) if length is None else length)
    return head + struct.pack('<I', masked_crc32c(head)) + data + struct.pack('<I', masked_crc32c(data))


def field(number, body):
    size, out = len(body), b''
    while size >= 128:
        out += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + out + bytes([size]) + body


def example(name, image):
    def feature(key, value):
        return field(1, field(1, key) + field(2, field(1, field(1, value))))
    labels = field(1, field(1, b'image/label') + field(2, field(3, field(1, bytes(14)))))
    return field(1, feature(b'image/encoded', image) + feature(b'image/filename', name) + labels)


def shards(good):
    sound = record(example(b'good.png', good))
    names = b''.join(record(example(name, good)) for name in [*LEADS_ELSEWHERE, b'nul\0.png'])
    lies = field(1, b'')[:1] + b'\xff\xff\xff\xff\x7f'
    return {
        'names': (sound + names, 'listed'),
        'length_2_63': (sound + record(b'x', 1 << 63), 'damaged'),
        'length_4_GB': (sound + record(b'x', 1 << 32), 'damaged'),
        'protobuf_length_lies': (sound + record(lies), 'damaged'),
        'protobuf_depth': (sound + record(b'\x0a' * 100000), 'damaged'),
    }


# Models.

def safetensors(path, header, data=0, length=None):
    """The tensors' bytes are a hole."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text) if length is None else length) + text)
        f.truncate(8 + len(text) + data)


def nested(depth):
    return b'[' * depth + b']' * depth


def tensor(begin, end, shape=None):
    return {'dtype': 'U8', 'shape': shape or [end - begin], 'data_offsets': [begin, end]}


def broken_models(folder):
    """Files that lie about their tensors."""
    empty = b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    safetensors(folder / 'overlap', {'a': tensor(0, 8), 'b': tensor(4, 12)}, 12)
    safetensors(folder / 'hole', {'a': tensor(0, 4), 'b': tensor(8, 12)}, 12)
    safetensors(folder / 'product_overflows', {'a': tensor(0, 8, [1 << 33, 1 << 33])}, 8)
    safetensors(folder / 'negative_extent', {'a': tensor(0, 8, [-1, -8])}, 8)
    safetensors(folder / 'header_2_63', {}, 100, 1 << 63)
    safetensors(folder / 'header_of_96_MB', b'{"a":[' + b'0,' * 48_000_000 + b'0]}')
    safetensors(folder / 'header_of_numbers', b'{"a":[' + b'0,' * 4_000_000 + b'0]}')
    safetensors(folder / 'header_of_brackets', b'{"a":' + b'[' * 1_000_000)
    safetensors(folder / 'header_nested', b'{"__metadata__":' + nested(500_000) + b'}')
    safetensors(folder / 'tensors_50000', {f't{i}': tensor(0, 0, [0]) for i in range(50_000)})
    safetensors(folder / 'name_twice', b'{"a":' + empty + b',"a":' + empty + b'}')
    safetensors(folder / 'a_hole_of_1_TB', {'a': tensor(0, 1 << 40)}, 1 << 40)
    (folder / 'pickle').write_bytes(b'\x80\x02cposix\nsystem\n(S"id"\ntR.')
    os.mkfifo(folder / 'pipe')
    os.symlink('/dev/zero', folder / 'endless')


def described_models(folder, sound):
    """The sound model's header with another description of what the network is."""
    with open(sound, 'rb') as f:
        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
    size = max(entry['data_offsets'][1] for name, entry in header.items() if name != '__metadata__')
    about = json.loads(header['__metadata__']['chexnet'])
    seen = about['preprocessing']

    def write(name, changes, raw=b''):
        text = json.dumps({**about, **changes}).encode().replace(b'"@"', raw)
        head = {**header, '__metadata__': {**header['__metadata__'], 'chexnet': text.decode()}}
        safetensors(folder / name, head, size)

    write('brackets_within', {'preprocessing': '@'}, nested(200_000))
    write('resize_2_31', {'preprocessing': {**seen, 'resize': (1 << 31) - 1}})
    write('crop_1e9', {'preprocessing': {**seen, 'resize': 10 ** 9, 'crop': 10 ** 9}})
    write('findings_100000', {'findings': [f'f{i}' for i in range(100_000)]})
    write('network_elsewhere', {'arch': '../../densenet121'})
    header['model.' * 200_000 + 'x'] = {'dtype': 'U8', 'shape': [0], 'data_offsets': [size, size]}
    write('name_of_repeats', {})


# Tables, lists and configs.

def tables(folder, names):
    def write(name, lines):
        (folder / name).write_text('\n'.join(lines) + '\n')

    rows = [row(name, i) for i, name in enumerate(names)]
    write('columns_1e6.csv', [HEADER + ',x' * 1_000_000, *rows])
    write('fields_1e6.csv', [HEADER, *rows, ',' * 1_000_000])
    write('quote_without_end.csv', [HEADER, *rows, '"' + 'x' * 4_000_000])
    write('quotes_1e6.csv', [HEADER, *rows, '""' * 1_000_000])
    write('findings_1e6.csv', [HEADER, *rows, '1.png,' + '|' * 1_000_000 + ',0,1,50,F,PA,1,1,1,1'])
    write('leads_elsewhere.csv', [HEADER, *rows, row('../../../../etc/passwd', 901), row('/etc/hostname', 902)])
    (folder / 'nul.csv').write_bytes(('\n'.join([HEADER, *rows]) + '\n').encode() + row('a\0b.png', 9).encode() + b'\n')
    (folder / 'gzip_bomb.csv.gz').write_bytes(gzip_zeros(300 * MEGABYTE, (HEADER + '\n').encode()))
    (folder / 'empty_lines_4e6.csv').write_bytes(HEADER.encode() + b'\n' * 4_000_000)
    (folder / 'zeros.csv').write_bytes(bytes(8 * MEGABYTE))
    (folder / 'image_names.csv').write_bytes(b'name,finding\n' + b'x' * (4 * MEGABYTE))
    os.mkfifo(folder / 'pipe.csv')
    for name in ('nan', 'inf', '-inf', '1e999', '0x1p9', '1e-400', 'NaN(1)'):
        write(f'cell_{name}.csv', ['image,patient,Mass', *[f'{n},{i},{i % 2}' for i, n in enumerate(names)][:-1],
                                   f'{names[-1]},99,{name}'])
    write('predictions_1e6.csv', ['image,' + ','.join(f'prob:{i}' for i in range(200_000)), 'a.png' + ',0' * 200_000])


def yaml_bombs(folder, config):
    lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
    lines += [f'a{i}: &a{i} [' + ', '.join([f'*a{i - 1}'] * 9) + ']' for i in range(1, 12)]
    texts = {
        'laughs': '\n'.join(lines),
        'itself': 'data: &d {manifest: *d}',
        'merge': 'data: &d {resize: 36}\ntrain:\n  <<: *d',
        'brackets': '[' * 250_000,
        'braces': 'data: ' + '{a: ' * 60_000,
        'dashes': '- ' * 125_000,
        'indents': '\n'.join(' ' * i + 'a:' for i in range(700)),
        'comment_of_1_MB': config + '#' * MEGABYTE,
        'key_of_250_KB': 'x' * 250_000 + ': 1',
        'keys_25000': '\n'.join(f'k{i}: 1' for i in range(25_000)),
        'quotes': 'a: "' + '\\x41' * 100_000,
        'tag': 'data: !!python/object/apply:os.system ["id"]',
        'nul': 'data:\n  resize: 3\0006\n',
        'anchors': '\n'.join(f'k{i}: &a{i} 1' for i in range(15_000)),
        'number': 'train: {lr: 1' + '0' * 100_000 + '}',
    }
    for name, text in texts.items():
        (folder / f'{name}.yaml').write_text(text)
    os.mkfifo(folder / 'pipe.yaml')
    os.symlink('/dev/zero', folder / 'endless.yaml')


# DICOM files whose ids are paths.

def xray(patient, instance, side=8):
    return dicom.picture([i * 37 % 4096 for i in range(64)], side, 12, instance=instance, x00100020=('LO', patient))


def dicom_files(folder):
    """Ten files with ids that lead elsewhere, and two with sizes that lie."""
    ids = [b'../../evil', b'/abs/evil', b'..', b'.', b'a/b', b'a\\b', b'x' * 64, b'new\nline', b'nul\0byte', b'-rf',
           b'%s%n', b'\xc3\xbc\xff']
    for i, patient in enumerate(ids):
        (folder / f'id_{i:02d}.dcm').write_bytes(xray(patient, b'../../evil' if i % 2 else b'1.2.3.%d' % i))
    return len(ids)


def dicom_lies(folder):
    (folder / 'rows_65535.dcm').write_bytes(xray(b'a', b'1.2.3', 65535))
    (folder / 'rows_7000.dcm').write_bytes(xray(b'b', b'1.2.4', 7000))
    sequence = struct.pack('<HH', 0x40, 0x275) + b'SQ' + bytes(2) + b'\xff\xff\xff\xff'
    item = struct.pack('<HHI', 0xfffe, 0xe000, 0xffffffff)
    pixels = struct.pack('<HH', 0x7fe0, 0x10)
    (folder / 'sequences.dcm').write_bytes(xray(b'c', b'1.2.5').replace(pixels, (sequence + item) * 20_000 + pixels))
    (folder / 'length_4_GB.dcm').write_bytes(
        xray(b'd', b'1.2.6')[:-140] + pixels + b'OW' + bytes(2) + b'\xfe\xff\xff\xff')
    attribute = struct.pack('<HH', 0x27, 0x10) + b'OB' + bytes(2) + struct.pack('<I', 0x4f4c0020)
    (folder / 'attribute_1_GB.dcm').write_bytes(xray(b'e', b'1.2.7').replace(struct.pack('<HH', 0x28, 2), attribute, 1))


# Cases.

class Corpus:
    """Writes the files, and the list of what to run on them."""

    def __init__(self, folder, phantom):
        self.folder, self.phantom = folder, phantom
        self.cases = []
        self.names = sorted(path.name for path in (phantom / 'images').iterdir())[:12]
        self.good = (phantom / 'images' / self.names[0]).read_bytes()
        self.sound = self.make('sound')
        for name in self.names:
            shutil.copy(phantom / 'images' / name, self.sound / name)
        self.table = self.write_table('sound.csv', self.names)
        self.one = self.write_table('one.csv', ['good.png'])
        self.config = folder / 'config.yaml'
        self.config.write_text(f'data:\n  manifest: {{path: {self.table}}}\n  images: [{self.sound}]\n  resize: 36\n'
                               '  crop: 32\n  val_fraction: 0\nmodel: {arch: densenet121, weights: none}\n'
                               'train: {batch: 4, max_steps: 1}\neval: {batch: 4, splits: []}\n'
                               'launch: {device: cpu, threads: 1}\n')

    def make(self, name):
        path = self.folder / name
        path.mkdir(parents=True)
        return path

    def write_table(self, name, images):
        path = self.folder / name
        path.write_text('\n'.join([HEADER, *[row(image, i + 1) for i, image in enumerate(images)]]) + '\n')
        return path

    def add(self, kind, name, command, codes, says='', like='inspect', short=False):
        self.cases.append({'kind': kind, 'name': name, 'command': [str(word) for word in command],
                           'codes': list(codes), 'says': says, 'like': like, 'short': short})

    def inspect(self, images, table, program='inspect'):
        return [program, self.config, '--set', f'data.images=[{images}]', '--set', f'data.manifest.path={table}']

    def write(self):
        self.add('sound', 'inspect', [*self.inspect(self.sound, self.table), '--threads', '1'], [0], like='')
        self.add('sound', 'predict', ['predict', '{model}', self.sound, '--out', '{out}/p.csv'], [0], like='')
        self.add('sound', 'version', ['--version'], [0], like='')
        self.add('sound', 'train', ['train', self.config, '--out', '{out}/run'], [0], like='')
        self.add('sound', 'evaluate', ['evaluate', '--predictions', self.sound_predictions()], [0], like='')
        self.add_pictures()
        self.add_archives()
        self.add_models()
        self.add_tables()
        self.add_configs()
        self.add_folders()
        self.add_dicom()
        self.add_stores()
        (self.folder / 'cases.json').write_text(json.dumps(self.cases, indent=1))

    def sound_predictions(self):
        path = self.folder / 'predictions.csv'
        path.write_text('image,label:A,prob:A\n' + ''.join(f'{i},{i % 2},0.{i + 1}\n' for i in range(9)))
        return path

    def add_pictures(self):
        together = self.make('pictures')
        files = pictures(self.good)
        for name, (content, _) in files.items():
            (together / name).write_bytes(content)
        special_files(together)
        damaged = [name for name, (_, what) in files.items() if what == 'damaged']
        strange = ['pipe.png', 'endless.png', 'terminal.png', 'round.png', 'folder.png', 'socket.png', 'hole.png']
        for name in [*files, *strange]:
            folder = self.make(f'picture/{name}')
            os.link(self.sound / self.names[0], folder / 'good.png')
            os.rename(together / name, folder / name)
            table = self.write_table(f'picture/{name}.csv', ['good.png', name])
            sound = name in files and name not in damaged
            codes = [0] if sound else [3, 8]
            self.add('picture', name, [*self.inspect(folder, table), '--threads', '1'], codes, '' if sound else name)
        link = self.make('all')
        rows = ['good.png']
        os.link(self.sound / self.names[0], link / 'good.png')
        for name in files:
            os.link(self.folder / 'picture' / name / name, link / name)
            rows.append(name)
        table = self.write_table('all.csv', rows)
        self.add('pictures', 'all at once, inspect', [*self.inspect(link, table), '--threads', '1'], [3],
                 f'{len(damaged)}', short=True)
        self.add('pictures', 'all at once, pack with skip',
                 [*self.inspect(link, table, 'pack'), '--set', 'data.corrupt=1',
                  '--out', '{out}/x.pack'], [0], 'damaged', short=True)
        for name in ('pipe.png', 'endless.png', 'socket.png', 'hole.png', 'round.png'):
            os.rename(self.folder / 'picture' / name / name, link / name)
            os.symlink(link / name, self.folder / 'picture' / name / name)
        self.add('pictures', 'all at once, predict', ['predict', '{model}', link, '--out', '{out}/p.csv'], [0],
                 'error', 'predict', short=True)

    def add_archives(self):
        folder = self.make('archives')
        kinds = {}
        for name, (content, what) in archives(self.good).items():
            (folder / name).write_bytes(content)
            kinds[name] = what
        for name, (content, what) in shards(self.good).items():
            (folder / f'{name}-00000-of-00001').write_bytes(content)
            kinds[f'{name}-00000-of-00001'] = what
        short = ('names.tar', 'names.tar.gz', 'names-00000-of-00001', 'long_name_of_1_GB.tar', 'size_2_62.tar')
        for name, what in kinds.items():
            codes = [3] if what == 'damaged' else [0]
            says = name if what == 'damaged' else ''
            self.add('archive', name, [*self.inspect(folder / name, self.one), '--threads', '1'], codes, says,
                     short=name in short)
        for name in ('names.tar', 'names.tar.gz', 'names-00000-of-00001'):
            self.add('names', f'predict with heat maps of {name}',
                     ['predict', '{model}', folder / name, '--out', '{out}/p.csv', '--heatmaps', '{out}/maps',
                      '--heatmap-findings', 'Mass'], [0], '', 'predict', short=name == 'names.tar')
            self.add('names', f'staged copy of {name}',
                     [*self.inspect(folder / name, self.one, 'pack'), '--set', 'data.stage={out}', '--out',
                      '{out}/x.pack'], [0], '')

    def add_models(self):
        folder = self.make('models')
        broken_models(folder)
        short = ('header_of_96_MB', 'header_of_numbers', 'header_of_brackets', 'a_hole_of_1_TB')
        for path in sorted(folder.iterdir()):
            target = path.rename(path.with_suffix('.safetensors'))
            self.add('model', path.name, ['predict', target, self.sound, '--out', '{out}/p.csv'], [4], path.name,
                     'version', short=path.name in short)
        described = ('brackets_within', 'resize_2_31', 'crop_1e9', 'findings_100000', 'network_elsewhere',
                     'name_of_repeats')
        named = ('brackets_within', 'name_of_repeats', 'findings_100000')
        for name in described:
            self.add('model', name, ['predict', self.folder / 'described' / f'{name}.safetensors', self.sound, '--out',
                                     '{out}/p.csv'], [0, 2, 4], '', 'predict', short=name in named)

    def add_tables(self):
        folder = self.make('tables')
        tables(folder, self.names)
        codes = {'fields_1e6': [3], 'leads_elsewhere': [3, 8], 'pipe': [8], 'image_names': [3],
                 'quotes_1e6': [3], 'predictions_1e6': [2, 3], 'cell_1e-400': [3]}
        for path in sorted(folder.iterdir()):
            name = path.name.split('.csv')[0]
            command = [*self.inspect(self.sound, path), '--threads', '1']
            like = 'inspect'
            if name.startswith('cell_'):
                command += ['--set', 'data.manifest.format=csv', '--set', 'data.manifest.columns.image=image', '--set',
                            'data.manifest.columns.patient=patient']
            if name == 'image_names':
                command = [*self.inspect(self.sound, self.table), '--set', f'data.finding_names={path}']
            if name == 'predictions_1e6':
                command, like = ['evaluate', '--predictions', path], 'evaluate'
            self.add('table', name, command, codes.get(name, [3]), '', like,
                     short=name in ('columns_1e6', 'zeros', 'gzip_bomb', 'cell_1e999'))

    def add_configs(self):
        folder = self.make('configs')
        yaml_bombs(folder, self.config.read_text())
        for path in sorted(folder.iterdir()):
            self.add('config', path.stem, ['train', path, '--out', '{out}/run'], [2], path.name,
                     short=path.stem in ('laughs', 'brackets', 'pipe'))

    def add_folders(self):
        folder = self.make('links')
        for i in range(30):
            deeper = folder / f'd{i}'
            deeper.mkdir()
            for name in ('a', 'b', 'c'):
                os.symlink('..', deeper / name)
            os.symlink('.', deeper / 'self')
        os.symlink('/', folder / 'root_of_all')
        os.link(self.sound / self.names[0], folder / 'good.png')
        (folder / 'root_of_all').unlink()
        os.symlink(folder, folder / 'up')
        self.add('folder', 'links in circles', [*self.inspect(folder, self.one), '--threads', '1'], [0, 3], short=True)
        deep = self.make('deep')
        os.link(self.sound / self.names[0], deep / 'good.png')
        here = os.getcwd()
        os.chdir(deep)
        for _ in range(300):
            os.mkdir('d' * 100)
            os.chdir('d' * 100)
        os.chdir(here)
        self.add('folder', '300 folders deep', [*self.inspect(deep, self.one), '--threads', '1'], [0, 3, 8])

    def add_dicom(self):
        folder = self.make('dicom')
        dicom_files(folder)
        lies = self.make('dicom_lies')
        dicom_lies(lies)
        for ids in ('keep', 'pseudonym'):
            self.add('dicom', f'ids that are paths, {ids}', ['dicom', folder, '--out', '{out}/set', '--ids', ids], [0],
                     '', 'dicom', short=ids == 'keep')
        self.add('dicom', 'sizes that lie', ['dicom', lies, '--out', '{out}/set', '--ids', 'keep'], [3],
                 'rows_7000.dcm: its pixels are cut off', 'dicom', short=True)
        sound = self.make('dicom_sound')
        (sound / 'a.dcm').write_bytes(xray(b'patient', b'1.2.3'))
        self.add('sound', 'dicom', ['dicom', sound, '--out', '{out}/set', '--ids', 'keep'], [0], '', '')
        self.add('dicom', 'predict, reports and captures',
                 ['predict', '{model}', folder, '--out', '{out}/p.csv', '--dicom', '{out}/dicom',
                  '--heatmaps', '{out}/maps', '--heatmap-findings', 'Mass'], [0], '', 'predict')

    def add_stores(self):
        for bucket, codes in (('names', [0]), ('entities', [0, 3]), ('sizes', [0, 3]), ('endless', [3])):
            self.add('store', bucket, ['predict', '{model}', f's3://{bucket}/', '--out', '{out}/p.csv', '--heatmaps',
                                       '{out}/maps', '--heatmap-findings', 'Mass', '--set', 'data.s3.attempts=1'],
                     codes, '', 'predict', short=bucket == 'names')


def main():
    folder, phantom = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if len(sys.argv) > 3:
        (folder / 'described').mkdir()
        described_models(folder / 'described', sys.argv[3])
        for path in list((folder / 'described').iterdir()):
            path.rename(path.with_suffix('.safetensors'))
        return
    Corpus(folder.resolve(), phantom.resolve()).write()


if __name__ == '__main__':
    main()
