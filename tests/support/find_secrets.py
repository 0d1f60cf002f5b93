#!/usr/bin/env python3
"""Searches every byte of folders for secrets: names and contents of files, also packed ones, in all usual spellings.

usage: find_secrets.py SECRETS PLACE...
SECRETS has a line "name<TAB>hexadecimal digits" for each secret. gzip, tar, zip (also .npz) and runs of zlib (PNG) are
unpacked, at any depth; spellings are the bytes themselves, hexadecimal digits, Base64 at each of three offsets, percent
escapes, JSON, XML, a shell's quotes, and UTF-16. Prints what was found where; exit code 1 when anything was, 2 when
there was nothing to search."""
import base64
import gzip
import html
import io
import json
import os
import re
import sys
import tarfile
import urllib.parse
import zipfile
import zlib

DEEPEST = 4
STREAM = re.compile(rb'\x78[\x01\x5e\x9c\xda]')  # where zlib may begin


def spellings(secret):
    found = {secret, secret.hex().encode(), secret.hex().upper().encode()}
    for offset in range(3):
        text = base64.b64encode(b'\0' * offset + secret)
        # Characters that bytes before or after would change are left out.
        inner = text[(offset * 8 + 5) // 6:(offset + len(secret)) * 8 // 6]
        found |= {inner, inner.replace(b'+', b'-').replace(b'/', b'_')}
    try:
        text = secret.decode('ascii')
    except UnicodeDecodeError:
        return found
    found |= {urllib.parse.quote(text, safe='').encode(), json.dumps(text)[1:-1].encode(), html.escape(text).encode(),
              text.replace('/', '\\/').encode(), text.encode('utf-16-le'), text.encode('utf-16-be')}
    return found


def unpacked(data):
    """(name, bytes) of what lies packed in the bytes."""
    if data[:2] == b'\x1f\x8b':
        yield 'gzip', gzip.decompress(data)
    elif data[:2] == b'PK':
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
    elif data[257:262] == b'ustar':
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                yield member.name, archive.extractfile(member).read() if member.isfile() else b''
    elif data[:8] == b'\x89PNG\r\n\x1a\n':
        for begin in STREAM.finditer(data):
            try:
                yield 'zlib', zlib.decompressobj().decompress(data[begin.start():])
            except zlib.error:
                pass


def search(where, data, wanted, found, depth=0):
    found.update((name, where) for name, texts in wanted.items() if any(text in data for text in texts))
    if depth == DEEPEST:
        return
    try:
        for name, inner in unpacked(data):
            search(f'{where}: {name}', name.encode('utf-8', 'surrogateescape'), wanted, found, DEEPEST)
            search(f'{where}: {name}', inner, wanted, found, depth + 1)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error):
        pass  # is none of these after all


def files_below(place):
    if not os.path.isdir(place):
        yield place
    for folder, folders, names in os.walk(place):
        yield from (os.path.join(folder, name) for name in folders + names)


def main():
    with open(sys.argv[1]) as lines:
        secrets = dict(line.split() for line in lines)
    wanted = {name: spellings(bytes.fromhex(digits)) for name, digits in secrets.items()}
    found, files, size = set(), 0, 0
    for place in sys.argv[2:]:
        for path in files_below(place):
            data = os.fsencode(os.readlink(path)) if os.path.islink(path) else b''
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, 'rb') as file:
                    data = file.read()
                files, size = files + 1, size + len(data)
            search(path, os.fsencode(os.path.relpath(path, place)), wanted, found, DEEPEST)
            search(path, data, wanted, found)
    print(f'{len(secrets)} secrets, {files} files, {size >> 10} KB searched')
    for name, where in sorted(found):
        print(f'found {name} in {where}')
    return 1 if found else 2 * (files == 0 or not secrets)


sys.exit(main())
