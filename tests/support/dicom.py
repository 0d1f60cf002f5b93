"""DICOM files value by value, in explicit VR little endian."""
import struct

LONG = ('OB', 'OW', 'SQ', 'UN', 'UT')
XRAY = '1.2.840.10008.5.1.4.1.1.1'  # Computed Radiography Image Storage
GRADIENT = [x * y % 256 for y in range(64) for x in range(64)]


def element(group, number, vr, value):
    """`value`: bytes, text, or the number of a US."""
    if not isinstance(value, bytes):
        value = struct.pack('<H', value) if vr == 'US' else value.encode()
    value += (b'\0' if vr in ('UI', 'OB', 'OW') else b' ') * (len(value) % 2)
    size = bytes(2) + struct.pack('<I', len(value)) if vr in LONG else struct.pack('<H', len(value))
    return struct.pack('<HH', group, number) + vr.encode() + size + value


def sequence(*elements):
    """A sequence of one item, as a value of picture()."""
    item = b''.join(element(*one) for one in elements)
    return 'SQ', struct.pack('<HHI', 0xfffe, 0xe000, len(item)) + item


def picture(pixels, side=64, bits=8, cell=None, sign=0, instance='1.2.3', **more):
    """A gray picture. `cell`: bits of a pixel in the file; `more`: x00100020=('LO', 'an id'); None leaves one out."""
    cell = cell or (8 if bits <= 8 else 16)
    body = struct.pack(f'<{len(pixels)}' + ('B' if cell == 8 else 'h' if sign else 'H'), *pixels)
    values = {
        'x00080016': ('UI', XRAY), 'x00080018': ('UI', instance), 'x00080060': ('CS', 'DX'), 'x00280002': ('US', 1),
        'x00280004': ('CS', 'MONOCHROME2'), 'x00280010': ('US', side), 'x00280011': ('US', side),
        'x00280100': ('US', cell), 'x00280101': ('US', bits), 'x00280102': ('US', bits - 1), 'x00280103': ('US', sign),
        'x7fe00010': ('OB' if cell == 8 else 'OW', body)} | more
    meta = element(2, 2, 'UI', XRAY) + element(2, 3, 'UI', instance) + element(2, 0x10, 'UI', '1.2.840.10008.1.2.1')
    data = [element(int(tag[1:5], 16), int(tag[5:], 16), *values[tag]) for tag in sorted(values) if values[tag]]
    return bytes(128) + b'DICM' + element(2, 0, 'UL', struct.pack('<I', len(meta))) + meta + b''.join(data)


def head(data, at):
    """Group, number and length of an element, and where its value begins."""
    form, length = ('<HH4xI', 12) if data[at + 4:at + 6].decode() in LONG else ('<HH2xH', 8)
    return *struct.unpack_from(form, data, at), at + length


def read(name):
    """{(group, element): bytes} of a file's own level; sequences of undefined length are skipped."""
    data = open(name, 'rb').read()
    assert data[128:132] == b'DICM', name
    found, at = {}, 132
    while at < len(data):
        group, number, size, at = head(data, at)
        if size == 0xffffffff:
            at = after_sequence(data, at)
        else:
            found[group, number], at = data[at:at + size], at + size
    return found


def after_sequence(data, at):
    """The offset after the sequence of undefined length whose items begin at `at`."""
    depth = 1
    while depth:
        group, number = struct.unpack_from('<HH', data, at)
        if group == 0xfffe:  # an item begins, or an item or a sequence ends
            depth, at = depth + (1 if number == 0xe000 else -1), at + 8
            continue
        _, _, size, at = head(data, at)
        depth, at = (depth + 1, at) if size == 0xffffffff else (depth, at + size)
    return at
