#!/usr/bin/env python3
"""What messages and pages tell people to type is an option of the command that they name. usage: hint_checks.py COMPLETION"""
import pathlib
import re
import sys

cases = re.findall(r"^    '([a-z]+) ([a-z]*)'\*?\) options='([^']*)'", pathlib.Path(sys.argv[1]).read_text(), re.M)
options = {f'{command} {part}'.strip(): set(words.split()) for command, part, words in cases}
commands = sorted(options, key=len, reverse=True)  # "bench step" before "bench"
# A command, and what follows it up to the end of a phrase.
PHRASE = re.compile(rf'(?<![\w-])({"|".join(commands)})((?: [^\s,;:()"`|>]+)*)')
COMMAND_LINE = re.compile(rf'chexnet-train ({"|".join(commands)})([^\n#|>`]*)')


def literals(text):
    """String literals of C++, those that follow one another as one."""
    text = re.sub(r'^\s*//.*$', '', text, flags=re.M)
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        yield re.sub(r'"\s*"', '', found[0])[1:-1].replace('\\n', '\n')


faults, seen = [], 0
for path in [*pathlib.Path('src').rglob('*.cpp'), *pathlib.Path('.').glob('*.md'), *pathlib.Path('docs').glob('*.md')]:
    if path.name == 'spelling_hint.cpp':  # what is gone, on purpose
        continue
    text = path.read_text()
    for part in literals(text) if path.suffix == '.cpp' else [text.replace('\\\n', ' ')]:
        pattern = PHRASE if path.suffix == '.cpp' else COMMAND_LINE
        for command, rest in pattern.findall(part):
            for option in re.findall(r'(?<![\w-])--[a-z][a-z-]*', rest):
                seen += 1
                if option not in options[command]:
                    faults.append(f'{path}: {command} {option}: {rest.strip()[:60]}')
if seen < 20:
    faults.append(f'only {seen} options found')
print(*faults, seen, sep='\n')
sys.exit(bool(faults))
