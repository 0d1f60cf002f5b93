#!/usr/bin/env python3
"""The figures of README's Results are the bold ones of docs/measurements.md, and links between our pages lead somewhere.
A bullet "**Name**" stands for the section "## Name", or "## GPU" for "**On a GPU**". usage: pages_test.py [README]"""
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
measured = {name: figures(' '.join(re.findall(r'\*\*(.*?)\*\*', text)))
            for name, text in sections((ROOT / 'docs/measurements.md').read_text()).items()}
claimed = collections.defaultdict(collections.Counter)
for name, text in re.findall(r'^- \*\*(.*?)\.?:?\*\*(.*?)(?=^- |^!|^$)', sections(readme)['Results'], flags=re.M | re.S):
    claimed[next((s for s in measured if name.lower().endswith(s.lower())), name)] += figures(text)
for line in sections(readme)['Data'].splitlines():  # what a pack gives
    claimed['Loading'] += figures(line) if 'images/s' in line else {}
faults = []
for name in sorted({*measured, *claimed}):
    for figure in sorted({*claimed[name], *measured.get(name, {})}):
        said, bold = claimed[name][figure], measured.get(name, {})[figure] if name in measured else 0
        if said != bold:
            faults.append(f'"{name}": README.md says {figure} {said} times, docs/measurements.md {bold} times in bold')
if len(claimed) < 8:
    faults.append(f'README.md: {len(claimed)} results found, not eight or more')


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
