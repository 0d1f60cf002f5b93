#!/usr/bin/env python3
"""A file is optimized as its precompiled header is: g++ 12 crashes on some where they differ, in one preset and not in
another. usage: pch_flags_test.py BUILD_FOLDER"""
import json
import pathlib
import re
import sys


def optimization(command):
    """All of them: a file's own -O3 changes nothing in one preset and much in another."""
    return re.findall(r'\s(-O\w*)', command)


commands = json.loads((pathlib.Path(sys.argv[1]) / 'compile_commands.json').read_text())
headers = {e['file'].removesuffix('.cxx'): optimization(e['command'])
           for e in commands if e['file'].endswith('cmake_pch.hxx.cxx')}
files = [(e['file'], found[1], optimization(e['command'])) for e in commands
         if not e['file'].endswith('cmake_pch.hxx.cxx')
         and (found := re.search(r'-include (\S+cmake_pch\.hxx)', e['command']))]
bad = [f'{file}: {" ".join(flags)}, but {header} is built with {" ".join(headers[header])}'
       for file, header, flags in files if flags != headers[header]]
print('\n'.join(bad) or f'{len(files)} files, {len(headers)} precompiled headers')
sys.exit(1 if bad or not files else 0)
