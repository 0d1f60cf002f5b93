#!/usr/bin/env python3
"""That each run of a sweep with train.rungs: [1] has one score, and has ended early if and only if its place says so; some have.
usage: rungs_check.py SWEEP"""
import glob
import json
import sys

sweep = sys.argv[1]
scores = [json.load(open(name)) for name in sorted(glob.glob(f'{sweep}/.rungs/epoch-1/*.json'))]
states = {state.split('/')[-4]: json.load(open(state)) for state in glob.glob(f'{sweep}/*/checkpoints/last/state.json')}
assert sorted(score['run'] for score in scores) == sorted(states) != [], (scores, sorted(states))
lost = []
for number, score in enumerate(scores):
    state, came = states[score['run']], scores[:number]
    worse_than = sum(other['value'] >= score['value'] for other in came)
    ends = 3 * worse_than >= number + 1
    assert state['complete'] and state['rung'] == 1, score
    assert (state['lost'] != '') == ends == (state['epoch'] == 1), (number, score, state['lost'])
    lost += [score['run']] if ends else []
assert 0 < len(lost) < len(scores), lost
print('ended early:', *lost)
