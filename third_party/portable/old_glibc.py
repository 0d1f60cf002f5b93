#!/usr/bin/env python3
"""Makes libraries to link with in place of this machine's C library, that know no symbol newer than a version of glibc.

usage: old_glibc.py VERSION FOLDER        for example: old_glibc.py 2.28 stubs, then: c++ -Lstubs …

They hold names and versions alone, read off this machine's glibc: nothing runs with them. What was linked with them
asks for the oldest interfaces that serve it, so it runs with VERSION and everything newer; a function that VERSION lacks
is an undefined symbol (compat.c has those that are needed here)."""
import collections
import pathlib
import re
import subprocess
import sys

# Since 2.34, some since 2.32, these are in libc.so.6; before, each was in a library of its own.
MOVED = [('libdl.so.2', r'dl(open|mopen|close|sym|vsym|error|addr1?|info)$'),
         ('librt.so.1', r'(shm|mq|timer|aio|lio)_'),
         ('libpthread.so.0', r'')]
SYMBOL = re.compile(r'\s*\d+: ([0-9a-f]+)\s+(\d+) (FUNC|IFUNC|OBJECT|NOTYPE|TLS)\s+(GLOBAL|WEAK|UNIQUE)\s+DEFAULT'
                    r'\s+(?:\d+|ABS) (\w+)@@?(GLIBC_[\d.]+)')


def number(version):
    return [int(part) for part in version.replace('GLIBC_', '').split('.')]


def place_of(name, library, newest):
    """The library that held the symbol before 2.34."""
    moved = newest == 'GLIBC_2.34' or (newest in ('GLIBC_2.32', 'GLIBC_2.33') and name.startswith('pthread_'))
    if library != 'libc.so.6' or not moved or name == '__libc_start_main':
        return library
    return next(place for place, pattern in MOVED if re.match(pattern, name))


def symbols_of(path, floor):
    """(library, version) -> [(name, type, binding, size, address)], each name in the newest version that is not above `floor`."""
    seen = collections.defaultdict(list)
    text = subprocess.run(['readelf', '--dyn-syms', '-W', path], check=True, text=True, stdout=subprocess.PIPE).stdout
    for line in text.splitlines():
        match = SYMBOL.match(line)
        if match:
            address, size, kind, binding, name, version = match.groups()
            seen[name].append((number(version), version, kind, binding, int(size), address))
    found = collections.defaultdict(list)
    for name, versions in seen.items():
        old = [one for one in versions if one[0] <= floor]
        if old:
            _, version, kind, binding, size, address = max(old)
            library = place_of(name, pathlib.Path(path).name, max(versions)[1])
            found[library, version].append((name, kind, binding, size, address))
    return found


def assembly(symbols):
    """Names for the same thing (environ, __environ) keep one address and which of them is weak: the linker then lets a
    program's copy of it answer to all."""
    lines, data = ['.text'], collections.defaultdict(list)
    for name, kind, binding, size, address in symbols:
        visible = f'.{"weak" if binding == "WEAK" else "globl"} {name}'
        if kind in ('FUNC', 'IFUNC', 'NOTYPE'):
            lines += [visible, f'.type {name}, @function', f'{name}: ret']
        else:
            data[kind, address].append((name, visible, size))
    for (kind, _), names in data.items():
        section, word = ('.tbss,"awT",@nobits', 'tls_object') if kind == 'TLS' else ('.bss,"aw",@nobits', 'object')
        lines += [f'.section {section}', '.balign 32']
        for name, visible, size in names:
            lines += [visible, f'.type {name}, @{word}', f'.size {name}, {size}', f'{name}:']
        lines.append(f'.zero {max(1, max(size for *_, size in names))}')
    return '\n'.join(lines + ['.section .note.GNU-stack,"",@progbits', ''])


def make(folder, library, nodes):
    """`nodes`: version -> symbols"""
    source, script = folder / f'{library}.s', folder / f'{library}.map'
    source.write_text(assembly([symbol for symbols in nodes.values() for symbol in symbols]))
    script.write_text(''.join(
        f'{version} {{ global: {" ".join(f"{symbol[0]};" for symbol in symbols)} }};\n'
        for version, symbols in sorted(nodes.items(), key=lambda node: number(node[0]))))
    subprocess.run(['cc', '-shared', '-nostdlib', '-Wl,--build-id=none', f'-Wl,-soname,{library}',
                    f'-Wl,--version-script,{script}', '-o', folder / library, source], check=True)
    source.unlink()
    script.unlink()


def main():
    if len(sys.argv) != 3 or not re.fullmatch(r'2\.\d+', sys.argv[1]):
        sys.exit(__doc__)
    floor, folder = number(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    libraries = collections.defaultdict(dict)
    for name in ('libc.so.6', 'libm.so.6', 'ld-linux-x86-64.so.2'):
        path = subprocess.run(['cc', f'-print-file-name={name}'], check=True, text=True, stdout=subprocess.PIPE).stdout
        for (library, version), symbols in symbols_of(path.strip(), floor).items():
            libraries[library][version] = symbols
    for library, nodes in libraries.items():
        make(folder, library, nodes)
    nonshared = subprocess.run(['cc', '-print-file-name=libc_nonshared.a'], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.strip()
    folder = folder.resolve()
    moved = ' '.join(str(folder / place) for place, _ in MOVED)
    (folder / 'libc.so').write_text(
        f'INPUT({folder}/libc.so.6 {nonshared} AS_NEEDED({moved} {folder}/ld-linux-x86-64.so.2))\n')
    (folder / 'libm.so').write_text(f'INPUT({folder}/libm.so.6)\n')


if __name__ == '__main__':
    main()
