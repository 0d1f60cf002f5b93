#!/usr/bin/env bash
# Some trials of the kill storm, of a fixed seed: what scripts/robustness/kill_storm does by the hundred (label slow).
source tests/lib.sh
check "killed runs resume to the same end and leave nothing behind" \
  scripts/robustness/kill_storm --program "$program" --folder "$scratch" --within 60 --ranks 2 --trials 3 --seconds 6 --seed 5

check "figures of a storm that was interrupted add up over its calls" \
  env PYTHONPATH=scripts/robustness PYTHONDONTWRITEBYTECODE=1 python3 - "$scratch/figures.json" <<'EOF'
import json
import sys

import storm

options = storm.parser('', ranks=2, within_s=2).parse_args(['--trials', '5', '--json', sys.argv[1]])


def call(interrupted_in):
    tally = storm.Tally(options, 'test')
    for number in tally.numbers():
        tally.counts['trials'] += 1
        tally.left['file'] += number == 2
        tally.values['number'].append(number)
        if number == interrupted_in:
            return None
    return tally.finish({})


call(interrupted_in=3)  # counted in memory alone
assert json.load(open(sys.argv[1]))['counts'] == {'trials': 2}
assert call(interrupted_in=None) == 0
figures = json.load(open(sys.argv[1]))
assert figures['counts'] == {'trials': 5} and figures['left_behind'] == {'file': 1}, figures
assert figures['values'] == {'number': [1, 2, 3, 4, 5]}, figures
assert [(c['first'], c['last']) for c in figures['calls']] == [(1, 2), (3, 5)], figures
call(interrupted_in=None)
assert json.load(open(sys.argv[1]))['counts'] == {'trials': 5}, 'all are done'
options.seed = 2
try:
    storm.Tally(options, 'test')
except SystemExit as error:
    assert '--seed 1' in str(error), error
else:
    raise AssertionError('trials of two seeds were added up')
EOF
finish
