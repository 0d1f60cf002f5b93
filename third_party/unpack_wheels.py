#!/usr/bin/env python3
"""usage: unpack_wheels.py PINS WHEELS PLACE: headers and shared libraries of the pinned wheels, flat under PLACE/include and PLACE/lib.

What a wheel would install beside Python (the programs, libraries and headers of an MPI) keeps its folders. Each wheel's SHA-256 is checked against its pin before a byte is unpacked. A file appears under its final name only when
it is whole, so an interrupted run leaves nothing that looks finished.
"""
import hashlib
import os
import re
import shutil
import sys
import zipfile

NOT_NEEDED = ("libtorch_python.so", "libnvperf_", "libcheckpoint.so", "libpcsamplingutil.so", "libshm.so")


def target(name):
    """Where a wheel's member goes below PLACE, or None when nothing here needs it."""
    found = re.match(r"[^/]+\.data/data/((?:bin|etc|include|lib|share)/.+[^/])$", name)
    if found:
        return found.group(1)
    found = re.search(r"(?:^|/)lib/(lib[^/]+\.so[0-9.]*)$", name)
    if found:
        return None if found.group(1).startswith(NOT_NEEDED) else "lib/" + found.group(1)
    found = re.match(r"(?:torch|nvidia/[^/]+)/include/(.+)$", name)
    if found and not name.endswith("/"):
        return "include/" + found.group(1)
    return None


def read_pins(path):
    """[(name==version, SHA-256)], or the end: a pin without a hash would let anything in."""
    pins = []
    for line in open(path):
        line = line.split("#")[0].strip()
        found = re.match(r"(\S+) --hash=sha256:([0-9a-f]{64})$", line)
        if line and not found:
            sys.exit(f"setup: {path}: {line}: no SHA-256. Hint: NAME==VERSION --hash=sha256:DIGEST")
        if found:
            pins.append(found.groups())
    return pins


def main():
    pins, wheels, place = sys.argv[1:4]
    wanted = read_pins(pins)
    by_hash = {}
    for name in sorted(os.listdir(wheels)):
        if name.endswith(".whl"):
            with open(os.path.join(wheels, name), "rb") as f:
                by_hash[hashlib.file_digest(f, "sha256").hexdigest()] = name
    for pin, digest in wanted:  # all of them, before a byte of one is unpacked
        if digest not in by_hash:
            sys.exit(f"setup: no wheel in {wheels} is {pin} (sha256 {digest}). Hint: scripts/setup --download FOLDER makes that folder")
    for _, digest in wanted:
        with zipfile.ZipFile(os.path.join(wheels, by_hash[digest])) as wheel:
            for member in wheel.infolist():
                to = target(member.filename)
                if to is None:
                    continue
                path = os.path.join(place, to)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with wheel.open(member) as source, open(path + ".partial", "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                if to.startswith("bin/"):
                    os.chmod(path + ".partial", 0o755)
                os.replace(path + ".partial", path)


main()
