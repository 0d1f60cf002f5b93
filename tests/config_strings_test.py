#!/usr/bin/env python3
"""Values of a config are types: outside config/ none is compared with a text literal, where a misspelling would compile and mean
"the other case". A member of a config is what a key names (`.optimizer`), compared as `== "sgd"` or looked up in a list of texts.
And nothing changes a loaded config: a command's own options are the last argument of load_config().
usage: config_strings_test.py [FOLDER...]; prints the places and how many there are, and fails unless there are none."""
import pathlib
import re
import sys

# The last parts of all keys, from the page that is printed from the table of options.
keys = set(re.findall(r'^\| `(?:[a-z0-9_.]*\.)?([a-z0-9_]+)`', pathlib.Path('docs/config.md').read_text(), re.M))
if len(keys) <= 60:
    sys.exit(f'only {len(keys)} keys found in docs/config.md')
# A chain that ends in a key and starts in something that holds a config: `config.train.optimizer`, `parts_.config.data.corrupt`,
# `launch.bind`, `config_.optimizer`. Files are joined, since a comparison may go over the end of a line.
owner = r'(?:config|config_|conf|c|run|data|manifest|columns|s3|model|train|eval|checkpoint|launch|launch_config|options\.train)'
value = rf'\b{owner}(?:\.|->)(?:{"|".join(sorted(keys))})\b'
named = r'choice_name\([^")]*\)\)?'
text = r'(?:std::string(?:_view)?[({])?"[^"]+"'
compared = re.compile(rf'(?:{value}|{named}) *[=!]= *{text}|{text}\)? *[=!]= *(?:[a-z_.]*{value}|{named})|'
                      rf'{value}\.(?:starts_with|compare)\({text}')
changed = re.compile(r'\bconfig_?\.[a-z_]+\.[a-z_.]+ = ')

places, changes = [], []
folders = sys.argv[1:] or ['include', 'src']
for path in sorted(p for folder in folders for p in pathlib.Path(folder).rglob('*.[ch]pp') if 'config' not in p.parts[:-1]):
    lines = path.read_text(errors='replace').split('\n')
    joined = ' '.join(re.sub(r'//.*', '', line) for line in lines)
    if '"' in joined:
        places += [f'{path}: {found[0]}' for found in compared.finditer(joined)]
    # What a run decided goes into the copy for its config.yaml.
    if path.parts[-2:] != ('run', 'run_decisions.cpp'):
        changes += [f'{path}:{n}:{line}' for n, line in enumerate(lines, 1) if changed.search(line)]
if changes:
    print('a loaded config is changed:', *changes, sep='\n')
print(*places, f'comparisons of config values with text outside config/: {len(places)}', sep='\n')
sys.exit(1 if places or changes else 0)
