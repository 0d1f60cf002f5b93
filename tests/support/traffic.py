"""traffic.py ONE TWO MOST KEPT: a table of the MB that a step moves for an image, from the lines of FAKE_GPU_TRAFFIC of
runs with one and two images, and of what it keeps of forward for backward; fails where they are more than MOST and KEPT,
or where maps are concatenated."""
import collections
import sys

KINDS = {'convolution_overrideable': 'convolutions, forward', 'convolution_backward_overrideable': 'convolutions, backward',
         'batch_norm_statistics': 'BatchNorm, forward', 'batch_norm_apply': 'BatchNorm, forward',
         'batch_norm_max_pool': 'BatchNorm, forward', 'batch_norm_average_pool': 'BatchNorm, forward',
         'batch_norm_sums': 'BatchNorm, backward', 'batch_norm_gradient': 'BatchNorm, backward',
         'batch_norm_add_up': 'BatchNorm, backward', 'batch_norm_corrected': 'BatchNorm, backward',
         'cat': 'concatenations', 'a copy': 'copies'}


def of_step(path):
    """Bytes by kind, of one step of the run; and what tensors hold when the first convolution goes backward."""
    steps, bytes_of, kept = 0, collections.Counter(), None
    for line in open(path):
        count, held, name = line.rstrip('\n').split(' ', 2)
        name = name.split('::')[-1]
        steps += name == 'batch_norm_max_pool'
        bytes_of[KINDS.get(name, 'else')] += int(count)
        if kept is None and name == 'convolution_backward_overrideable':
            kept = int(held)
    return {kind: count / steps for kind, count in bytes_of.items()}, kept


(one, kept_one), (two, kept_two) = map(of_step, sys.argv[1:3])
moved = {kind: (two[kind] - one[kind]) / 1e6 for kind in two}
kept = (kept_two - kept_one) / 1e6
for kind, megabytes in sorted(moved.items()):
    print(f'{kind:24}{megabytes:8.1f} MB an image')
print(f'{"all":24}{sum(moved.values()):8.1f}')
print(f'{"kept for backward":24}{kept:8.1f}')
sys.exit(moved.get('concatenations', 0) > 0.1 or sum(moved.values()) > float(sys.argv[3]) or not 1 < kept <= float(sys.argv[4]))
