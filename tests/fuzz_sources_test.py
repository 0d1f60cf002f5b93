#!/usr/bin/env python3
"""tests/fuzz/CMakeLists.txt names each source that the fuzz targets call: the preset `fuzz`, which few people build, would
not link without. Looks at this build's objects of the same files. usage: fuzz_sources_test.py BUILD_FOLDER"""
import pathlib
import re
import subprocess
import sys

# What the targets link as a whole.
WHOLE = {'core', 'config', 'image', 'launch', 'storage', 'checkpoint'}


def objects(files):
    """{file: (symbols it defines for others, symbols it needs)}; an archive's members are ARCHIVE:MEMBER."""
    found = {}
    listing = subprocess.run(['nm', '-A', *map(str, files)], stdout=subprocess.PIPE, check=True, text=True).stdout
    for name, kind, symbol in re.findall(r'^(.+?):[0-9a-f ]+ ([A-Za-z]) (\S+)$', listing, re.MULTILINE):
        defined, needed = found.setdefault(name, (set(), set()))
        if kind == 'U':
            needed.add(symbol)
        elif kind.isupper():
            defined.add(symbol)
    return found


build = pathlib.Path(sys.argv[1])
targets = sorted((build / 'tests/CMakeFiles/test_base.dir/fuzz/targets').glob('*.o'))
libraries = sorted((build / 'src').glob('libchexnet_*.a'))
if not targets or not libraries:
    print('the tests are not built here')
    sys.exit(77)
members = objects(libraries)
definer = {symbol: member for member, (defined, _) in members.items() for symbol in defined}
open_symbols = {symbol for _, needed in objects(targets).values() for symbol in needed}
linked = set()
while open_symbols:
    more = {definer[symbol] for symbol in open_symbols if symbol in definer} - linked
    linked |= more
    open_symbols = {symbol for member in more for symbol in members[member][1]}
sources = {'/'.join(re.search(r'libchexnet_(\w+)\.a:(\w+)\.cpp\.o$', member).groups()) for member in linked}
named = set(re.search(r'set\(sources\n(.*?)\)', pathlib.Path('tests/fuzz/CMakeLists.txt').read_text(), re.DOTALL)[1].split())
missing = sorted(s for s in sources - named if s.split('/')[0] not in WHOLE)
idle = sorted(named - sources)
if missing:
    print(f'tests/fuzz/CMakeLists.txt lacks {", ".join(missing)}')
if idle:
    print(f'tests/fuzz/CMakeLists.txt names what no target calls: {", ".join(idle)}')
print(f'{len(targets)} targets link {len(sources)} sources')
sys.exit(bool(missing or idle))
