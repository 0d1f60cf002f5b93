#!/usr/bin/env python3
"""The figures of README's Results are the bold ones of docs/measurements.md, and links between our pages lead somewhere.
A bullet or row "**Name**" has the section "## Name" ("**On a GPU**" has "## GPU"). usage: pages_test.py [README]"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = re.compile(r'(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?!\w)|\bquarter\b|\btwo\s+thirds\b')


def figures(text):
    """Numbers that are no part of a name or an address; "quarter" and "two thirds" as well."""
    return collections.Counter(re.sub(r'\s+', ' ', n).rstrip(',') for n in NUMBER.findall(re.sub(r'\]\([^)]*\)', ']', text)))


def sections(page):
    """Text by heading of the second level."""
    parts = re.split(r'^## (.*)$', page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


readme = pathlib.Path(sys.argv[1] if sys.argv[1:] else ROOT / 'README.md').read_text()
results = sections(readme)['Results']
measurements = (ROOT / 'docs/measurements.md').read_text()
bold = {name: figures(' '.join(re.findall(r'\*\*(.*?)\*\*', text))) for name, text in sections(measurements).items()}
said = {name: collections.Counter() for name in bold}
rows = re.findall(r'^(?:- |\| *)\*\*(.*?)\.?:?\*\*(.*?)(?=^- |^\||^!|^$)', results, flags=re.M | re.S)
for name, text in rows:
    section = next((s for s in bold if name.lower().endswith(s.lower())), name)
    said[section] = said.get(section, collections.Counter()) + figures(text)
for line in readme.replace(results, '').splitlines():  # what a pack gives; what the quickstart takes
    said['Loading'] += figures(line) if 'images/s' in line else collections.Counter()
    said['Set-up, build, start'] += figures(line) if re.search(r'\d (minutes|hours|seconds|[GM]B)\b', line) else collections.Counter()
faults = [f'"{name}": README.md says {f} {said[name][f]} times, docs/measurements.md {bold.get(name, {}).get(f, 0)} times in bold'
          for name in said for f in sorted({*said[name], *bold.get(name, {})}) if said[name][f] != bold.get(name, {}).get(f, 0)]
if len(rows) < 6:
    faults.append(f'README.md: {len(rows)} results found, not six or more')
if measurements.count('\n') > 200:
    faults.append('docs/measurements.md has more than 200 lines: what is not current goes to docs/lab')


def anchors(page):
    heads = re.findall(r'^#+ (.*)$', page.read_text(), flags=re.M)
    return {re.sub(r'[^\w\- ]', '', re.sub(r'\]\([^)]*\)', '', h).lower()).replace(' ', '-') for h in heads}


for page in [*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md')]:
    for link in re.findall(r'\]\(([^)\s]+)\)', page.read_text()):
        name, _, anchor = link.partition('#')
        target = (page.parent / name).resolve() if name else page
        if not re.match(r'\w+:', link) and (not target.exists() or (anchor and anchor not in anchors(target))):
            faults.append(f'{page.relative_to(ROOT)}: the link {link} leads nowhere')
sys.exit('\n'.join(faults) or 0)
