"""traffic.py ONE TWO MOST KEPT LAUNCHES: a table of the MB that a step moves for an image, from the lines of
FAKE_GPU_TRAFFIC of runs with one and two images, and of what it keeps of forward for backward; and the number of its
kernels, one for each operator. Fails where they are more than MOST, KEPT and LAUNCHES, or where maps are concatenated."""
import collections
import sys

KINDS = {'convolution_overrideable': 'convolutions, forward', 'convolution_backward_overrideable': 'convolutions, backward',
         'batch_norm_statistics': 'BatchNorm, forward', 'batch_norm_apply': 'BatchNorm, forward',
         'batch_norm_max_pool': 'BatchNorm, forward', 'batch_norm_average_pool': 'BatchNorm, forward',
         'batch_norm_sums': 'BatchNorm, backward', 'batch_norm_gradient': 'BatchNorm, backward',
         'batch_norm_add_up': 'BatchNorm, backward', 'batch_norm_corrected': 'BatchNorm, backward',
         'cat': 'concatenations', 'a copy': 'copies'}


def of_step(path):
    """Bytes by kind, of one step of the run; what tensors hold when the first convolution goes backward; the kernels
    of the last whole step."""
    begins, bytes_of, kept = [], collections.Counter(), None
    for number, line in enumerate(open(path)):
        count, held, name = line.rstrip('\n').split(' ', 2)
        name = name.split('::')[-1]
        if name == 'batch_norm_max_pool':
            begins.append(number)
        bytes_of[KINDS.get(name, 'else')] += int(count)
        if kept is None and name == 'convolution_backward_overrideable':
            kept = int(held)
    return {kind: count / len(begins) for kind, count in bytes_of.items()}, kept, begins[-1] - begins[-2]


(one, kept_one, _), (two, kept_two, launches) = map(of_step, sys.argv[1:3])
most, most_kept, most_launches = map(float, sys.argv[3:])
moved = {kind: (two[kind] - one[kind]) / 1e6 for kind in two}
kept = (kept_two - kept_one) / 1e6
for kind, megabytes in sorted(moved.items()):
    print(f'{kind:24}{megabytes:8.1f} MB an image')
print(f'{"all":24}{sum(moved.values()):8.1f}')
print(f'{"kept for backward":24}{kept:8.1f}')
print(f'{"kernels of a step":24}{launches:6}')
sys.exit(moved.get('concatenations', 0) > 0.1 or sum(moved.values()) > most or not 1 < kept <= most_kept or launches > most_launches)
